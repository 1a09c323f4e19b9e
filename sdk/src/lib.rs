//! Makes an external action safe to retry.
