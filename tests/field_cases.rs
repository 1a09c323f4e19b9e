//! Cases from the field, each named after it.
