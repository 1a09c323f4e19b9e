//! What is particular to the ledger in a SQLite file.

mod checks;
mod hits;
mod migrating;
mod opening;
mod processes;
mod rules;
mod support;
mod trouble;
