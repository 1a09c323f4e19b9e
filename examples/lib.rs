//! One story a file: see the header of each.
