//! The ledger against the bank's books: nothing twice, nothing lost.

use std::collections::HashMap;

use sqlx::{ConnectOptions, Connection, PgConnection, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::{
    Failed,
    bank::{Account, Bank},
    board::{Board, Order},
    effects::Class,
};

/// How many rows are read at once.
const PAGE: i64 = 100_000;

/// How many problems are told one by one.
const TOLD_MAX: usize = 40;

/// What the comparison came to.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) effects: usize,
    pub(crate) duplicates: usize,
    pub(crate) lost: usize,
    pub(crate) escaped: usize,
    /// Further performances of effects that may be repeated.
    pub(crate) repeats: usize,
    told: usize,
}

/// What is stored of an effect: its readable key, its state and its outcome.
type Row = (Option<String>, String, Option<Vec<u8>>, String);

struct Stored {
    state: String,
    number: Option<u32>,
    /// Attempt, fence, revision, verdict and doubt, for a problem.
    more: String,
}

enum Reader {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Reader {
    async fn open(ledger: &str, place: &str) -> Result<Self, Failed> {
        Ok(match ledger {
            "sqlite" => Self::Sqlite(SqliteConnectOptions::new().filename(place).connect().await?),
            _ => Self::Postgres(PgConnection::connect(place).await?),
        })
    }

    async fn page(&mut self, from: i64) -> sqlx::Result<Vec<Row>> {
        match self {
            Self::Sqlite(connection) => {
                let sql = "SELECT readable, state, payload, attempt || '/' || fence || '/' || revision || ' ' || coalesce(verdict, 'open')
                    || ' doubt ' || coalesce(doubt_attempt, 0) FROM effectual_effects WHERE state IS NOT NULL
                    ORDER BY seq LIMIT $1 OFFSET $2";
                sqlx::query_as(sql).bind(PAGE).bind(from).fetch_all(connection).await
            }
            Self::Postgres(connection) => {
                let sql =
                    "SELECT readable, state::text, payload, attempt::text || '/' || fence || '/' || revision || ' '
                    || coalesce(verdict, 'open') || ' doubt ' || coalesce(doubt_attempt, 0) FROM effectual_effects WHERE state IS NOT NULL
                    ORDER BY digest_head LIMIT $1 OFFSET $2";
                sqlx::query_as(sql).bind(PAGE).bind(from).fetch_all(connection).await
            }
        }
    }

    /// What is stored, by order.
    async fn all(&mut self) -> Result<HashMap<u32, Stored>, Failed> {
        let mut all = HashMap::new();
        loop {
            let rows = self.page(i64::try_from(all.len())?).await?;
            let count = rows.len();
            for (readable, state, payload, more) in rows {
                let order = readable.as_deref().and_then(|readable| readable.strip_prefix("order="));
                let number = payload.and_then(|payload| String::from_utf8(payload).ok()?.parse().ok());
                all.insert(order.ok_or("a row without its order")?.parse()?, Stored { state, number, more });
            }
            if count < usize::try_from(PAGE)? {
                return Ok(all);
            }
        }
    }
}

pub(crate) async fn compare(ledger: &str, place: &str, bank: &Bank, board: &Board) -> Result<Found, Failed> {
    let stored = Reader::open(ledger, place).await?.all().await?;
    let (books, board) = (bank.books(), board.inner());
    let mut found = Found { effects: stored.len(), ..Found::default() };
    for problem in &board.problems {
        found.lost(problem);
    }
    for (order, known) in (0..).zip(&board.orders) {
        let account = books.accounts.get(order as usize).copied().unwrap_or_default();
        let repeats = books.repeats.get(&order).map(Vec::as_slice).unwrap_or_default();
        let why = board.escaped.get(&order).map_or("", String::as_str);
        found.judge(order, *known, account, repeats, stored.get(&order), why);
    }
    Ok(found)
}

impl Found {
    fn tell(&mut self, what: &str) {
        self.told += 1;
        if self.told <= TOLD_MAX {
            println!("soak: {what}");
        }
    }

    fn lost(&mut self, what: &str) {
        self.lost += 1;
        self.tell(&format!("lost: {what}"));
    }

    fn judge(
        &mut self,
        order: u32,
        known: Order,
        account: Account,
        repeats: &[u32],
        stored: Option<&Stored>,
        why: &str,
    ) {
        let class = Class::of(order);
        let state = stored.map_or("absent", |stored| stored.state.as_str());
        let number = stored.and_then(|stored| stored.number);
        let is_one = number.is_some_and(|number| number == account.first || repeats.contains(&number));
        let text = format!(
            "order {order} ({class:?}): {state} with {number:?}, reported {}, performed {} from {} and {repeats:?}; {} {why}",
            known.reported,
            account.performed,
            account.first,
            stored.map_or("", |stored| &stored.more)
        );
        if class == Class::Rerun {
            self.repeats += repeats.len();
        } else if account.performed > 1 || account.has_two_keys {
            self.duplicates += 1;
            self.tell(&format!("duplicate: {text}"));
        }
        match state {
            "completed" if !is_one || known.reported != 0 && Some(known.reported) != number => {
                self.lost(&text)
            }
            "completed" => {}
            // Nobody knows whether it was performed, and nobody said that it was.
            "escaped" if class == Class::Hold && known.reported == 0 => self.escaped += 1,
            _ => self.lost(&text),
        }
    }
}
