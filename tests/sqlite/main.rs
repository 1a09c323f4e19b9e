//! What is particular to the ledger in a SQLite file.

mod checks;
mod hits;
mod opening;
mod processes;
mod support;
mod trouble;
