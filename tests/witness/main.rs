//! The witness over real sockets: every answer is held against the schema that comes with the crate.

mod large;
mod paths;
mod serve;
mod shown;
