//! The HTTP adapter.
