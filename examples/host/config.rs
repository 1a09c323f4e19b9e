//! What the environment says.

use std::{env, path::PathBuf};

use effectual_examples::folder;

use crate::auth::ApiKeys;

/// Where the ledger is, and with it the host's own table.
pub enum Database {
    Sqlite(PathBuf),
    Postgres(String),
}

pub struct Config {
    pub address: String,
    pub database: Database,
    pub keys: ApiKeys,
    pub test_seams: bool,
}

impl Config {
    /// # Errors
    /// A text that names the variable, and never its value: keys and passwords are in them.
    pub fn from_environment() -> Result<Self, String> {
        let keys = env::var("HOST_API_KEYS").map_err(|_| "HOST_API_KEYS is not set: `tenant=key,…`")?;
        let test_seams = match env::var("HOST_TEST_SEAMS").as_deref() {
            Ok("1") => true,
            Ok("0" | "") | Err(env::VarError::NotPresent) => false,
            _ => return Err("HOST_TEST_SEAMS is 1 or 0".to_owned()),
        };
        Ok(Self {
            address: env::var("HOST_ADDR").unwrap_or_else(|_| "127.0.0.1:8742".to_owned()),
            database: database()?,
            keys: ApiKeys::parse(&keys)?,
            test_seams,
        })
    }
}

fn database() -> Result<Database, String> {
    match env::var("HOST_LEDGER") {
        Ok(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            Ok(Database::Postgres(url))
        }
        Ok(path) if !path.is_empty() => Ok(Database::Sqlite(path.into())),
        Ok(_) => Err("HOST_LEDGER is empty: a path of an SQLite file, or postgres://…".to_owned()),
        Err(_) => {
            let folder = folder("host").map_err(|error| format!("no folder for the ledger: {error}"))?;
            Ok(Database::Sqlite(folder.join("ledger.db")))
        }
    }
}
