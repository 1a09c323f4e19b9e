//! Connections of the ledger: whose they are, and what is pinned on them.

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use sqlx::{ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};

use super::{
    error::{Cause, Trouble},
    session::Session,
};
use crate::{
    clock,
    ledger::{LedgerError, LedgerErrorKind},
};

/// Where the ledger is, as messages name it: never with a credential.
#[derive(Debug, Clone)]
pub(super) struct Target(Arc<str>);

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Target {
    fn of(options: &PgConnectOptions) -> Self {
        let database = options.get_database().unwrap_or_else(|| options.get_username());
        let (host, port) = (options.get_host(), options.get_port());
        Self(format!("database `{database}` at {host}:{port}").into())
    }
}

/// How connections are opened. Has no `Debug`: it holds the password.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) options: PgConnectOptions,
    /// The same without the ledger's settings, for an effect's own SQL.
    pub(super) plain: PgConnectOptions,
    /// What pins the settings of one transaction through a pooler; `None` where they are pinned for the session.
    pins: Option<Arc<str>>,
    /// What pins them for the rest of a transaction that is an effect's own until then.
    pub(super) transaction_pins: Arc<str>,
    pub(super) target: Target,
    pub(super) schema: Option<String>,
    pub(super) patience: Duration,
    pub(super) offset_ms: i64,
}

/// What every connection of the ledger pins, or every transaction through a pooler, whatever database, role and server
/// say.
///
/// Without the planner's settings a table that was never analysed gets a hash join over a scan of the whole table. What
/// a statement may not use is priced, so that compiling it would seem worth its while: hence no `jit`.
const PINS: [(&str, &str); 9] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_bitmapscan", "off"),
    ("jit", "off"),
    ("statement_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    // Longer than any transaction of a ledger: whoever holds a row for longer must not stop other effects.
    ("lock_timeout", "1000"),
];

impl Connector {
    pub(super) fn new(
        url: &str,
        schema: Option<String>,
        is_pooled: bool,
        patience: Duration,
        offset_ms: i64,
    ) -> Result<Self, LedgerError> {
        let wrong = |what: &'static str| LedgerError::new(LedgerErrorKind::Closed, what);
        let is_postgres = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
        let options =
            is_postgres.then(|| PgConnectOptions::from_str(url).ok()).flatten().ok_or_else(|| {
                wrong("the URL of the PostgreSQL ledger is not `postgres://user:password@host:port/database`")
            })?;
        let mut options = options.disable_statement_logging();
        if options.get_application_name().is_none() {
            options = options.application_name("effectual");
        }
        if schema.as_deref().is_some_and(|schema| !is_plain_name(schema)) {
            return Err(wrong(
                "the schema of the PostgreSQL ledger must be 1 to 63 of `a-z 0-9 _`, not starting with a digit",
            ));
        }
        let search_path = schema.as_deref().map(|schema| ("search_path", schema));
        if is_pooled {
            // Poolers refuse start-up parameters that they do not know.
            options = options.extra_float_digits(None);
        }
        let plain = options.clone();
        let pins: Vec<_> = PINS.into_iter().chain(search_path).collect();
        let set: Vec<_> = pins.iter().map(|(name, value)| format!("SET LOCAL {name} = '{value}'")).collect();
        let transaction_pins: Arc<str> = set.join("; ").into();
        let pins = if is_pooled {
            Some(Arc::clone(&transaction_pins))
        } else {
            options = options.options(pins).options([("default_transaction_isolation", "read committed")]);
            None
        };
        let target = Target::of(&options);
        Ok(Self { options, plain, pins, transaction_pins, target, schema, patience, offset_ms })
    }

    pub(super) fn is_pooled(&self) -> bool {
        self.pins.is_some()
    }

    pub(super) async fn connect(&self) -> Result<Session, Setback> {
        match clock::within(self.patience, PgConnection::connect_with(&self.options)).await {
            Some(Ok(connection)) => Ok(Session::new(connection, self.pins.clone(), self.offset_ms)),
            Some(Err(error)) => Err(Setback::of(&error)),
            None => Err(Setback::timeout()),
        }
    }
}

/// What needs no quotes anywhere.
fn is_plain_name(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// An error with what it means.
#[derive(Debug)]
pub(super) struct Setback {
    pub(super) trouble: Trouble,
    pub(super) cause: Cause,
}

impl Setback {
    pub(super) fn of(error: &sqlx::Error) -> Self {
        Self { trouble: Trouble::of(error), cause: Cause::of(error) }
    }

    pub(super) fn timeout() -> Self {
        Self { trouble: Trouble::Lost, cause: Cause::timeout() }
    }
}

/// A connection that is opened when it is needed, and again when it was lost.
pub(super) struct Link {
    pub(super) connector: Connector,
    session: Option<Session>,
}

impl Link {
    pub(super) fn new(connector: Connector, session: Option<Session>) -> Self {
        Self { connector, session }
    }

    pub(super) async fn get(&mut self) -> Result<&mut Session, Setback> {
        let session = match self.session.take() {
            Some(session) => session,
            None => self.connector.connect().await?,
        };
        Ok(self.session.insert(session))
    }

    /// Forgets the connection, whose state is not known.
    pub(super) fn lose(&mut self) {
        self.session = None;
    }

    pub(super) async fn close(mut self) {
        self.disconnect().await;
    }

    /// Gives the connection back to the server; the next use opens another.
    pub(super) async fn disconnect(&mut self) {
        if let Some(session) = self.session.take() {
            // The server notices a client that left without a word as well.
            drop(clock::within(self.connector.patience, session.close()).await);
        }
    }
}
