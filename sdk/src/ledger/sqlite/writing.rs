//! What a judged batch stores, by compare-and-set.

use std::collections::HashSet;

use futures_util::TryStreamExt;
use sqlx::{Either, Executor, SqliteConnection};

use super::{
    beside::{self, Touch},
    columns::Statements,
    row::{self, Bound},
    shape::{self, Shape},
    sized::{Part, ROWS_MAX},
};
use crate::{
    identity::EffectId,
    ledger::{
        LedgerError,
        record::{EffectRecord, Fence, State},
        transition::Write,
        writer::Reply,
    },
};

/// What of a judged row must still hold when its successor is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) revision: i64,
    pub(super) state: State,
    pub(super) fence: Fence,
}

impl Seen {
    pub(super) fn of(record: &EffectRecord) -> Self {
        Self { revision: record.revision, state: record.state, fence: record.fence }
    }
}

/// A command's answer, and what makes it true.
pub(super) struct Judged {
    pub(super) reply: Result<Reply, LedgerError>,
    pub(super) write: Option<(Shape, Write)>,
    /// The row that was judged; `None` where there was none.
    pub(super) seen: Option<Seen>,
    pub(super) touch: Option<Touch>,
}

impl Judged {
    pub(super) fn new(
        reply: Reply,
        write: Option<Write>,
        current: Option<&EffectRecord>,
        touch: Option<Touch>,
    ) -> Self {
        let write = write.map(|write| (Shape::of(current, &write), write));
        Self { reply: Ok(reply), write, seen: current.map(Seen::of), touch }
    }

    pub(super) fn failed(error: LedgerError) -> Self {
        Self { reply: Err(error), write: None, seen: None, touch: None }
    }

    pub(super) fn writes(&self) -> bool {
        self.write.is_some() || self.touch.is_some()
    }

    /// Whether it makes a row that was not there.
    pub(super) fn is_new(&self) -> bool {
        self.write.is_some() && self.seen.is_none()
    }

    /// Whether something is kept beside the row, and only if the row was stored.
    fn is_apart(&self) -> bool {
        self.touch.is_some() || self.write.as_ref().is_some_and(|(_, write)| beside::is_needed(write))
    }
}

/// Whose the transaction is that a batch is stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transaction {
    /// Of the batch alone: begun and committed with it.
    Own,
    /// The caller's, who has begun it and ends it.
    Callers,
}

/// Stores the writes of a batch. The positions of those that are to be judged again: their row was no longer the judged one,
/// or that of another in the same statement was not, which then has to be found out by reading.
pub(super) async fn store(
    conn: &mut SqliteConnection,
    statements: &Statements,
    judged: &[Judged],
    transaction: Transaction,
) -> sqlx::Result<Vec<usize>> {
    let Plan { pieces, apart, mut again } = Plan::of(judged);
    let own = transaction == Transaction::Own;
    let commits = own && !apart.is_empty();
    let is_alone = pieces.len() == 1 && apart.is_empty();
    for (at, piece) in pieces.iter().enumerate() {
        let part = match at {
            _ if !own || is_alone => Part::Plain,
            0 => Part::First,
            _ if !commits && at + 1 == pieces.len() => Part::Last,
            _ => Part::Plain,
        };
        if !piece.store(conn, statements, judged, part).await? {
            again.extend(&piece.positions);
        }
    }
    if own && pieces.is_empty() && commits {
        sqlx::query("BEGIN IMMEDIATE").execute(&mut *conn).await?;
    }
    for position in apart {
        let stored = match &judged[position].write {
            Some((shape, _)) => {
                let piece = Piece { shape: *shape, positions: vec![position] };
                piece.store(conn, statements, judged, Part::default()).await?
            }
            None => true,
        };
        if stored {
            beside::store(conn, &judged[position]).await?;
        } else {
            again.push(position);
        }
    }
    if commits {
        sqlx::query("COMMIT").execute(conn).await?;
    }
    Ok(again)
}

/// In which statements a batch is stored.
struct Plan {
    pieces: Vec<Piece>,
    /// One by one, because something is kept beside the row.
    apart: Vec<usize>,
    /// Two identities of a batch may name one effect: the second is judged again.
    again: Vec<usize>,
}

impl Plan {
    fn of(judged: &[Judged]) -> Self {
        let (mut apart, mut again) = (Vec::new(), Vec::new());
        let mut shaped = Shape::ALL.map(|shape| Piece { shape, positions: Vec::new() });
        let mut once: HashSet<&EffectId> = HashSet::with_capacity(judged.len());
        for (position, judged) in judged.iter().enumerate() {
            match &judged.write {
                Some((_, write)) if !once.insert(&write.effect.id) => again.push(position),
                _ if judged.is_apart() => apart.push(position),
                Some((shape, _)) => shaped[*shape as usize].positions.push(position),
                None => {}
            }
        }
        let pieces = shaped.into_iter().flat_map(Piece::cut).collect();
        Self { pieces, apart, again }
    }
}

/// What one statement stores.
struct Piece {
    shape: Shape,
    positions: Vec<usize>,
}

impl Piece {
    /// In statements that take all of them.
    fn cut(self) -> Vec<Self> {
        let pieces = self.positions.chunks(ROWS_MAX);
        pieces.map(|positions| Self { shape: self.shape, positions: positions.to_vec() }).collect()
    }

    /// Whether all of it was stored.
    async fn store(
        &self,
        conn: &mut SqliteConnection,
        statements: &Statements,
        judged: &[Judged],
        part: Part,
    ) -> sqlx::Result<bool> {
        let sized = match self.shape {
            Shape::Claim => &statements.claim,
            Shape::Settle => &statements.settle,
            Shape::Renew => &statements.renew,
            Shape::Whole => &statements.update,
        };
        let query = sqlx::query(sized.of(self.positions.len(), part));
        let query = self.positions.iter().fold(query, |query, position| bind(query, &judged[*position]));
        // The results come in the statements' order. Behind the last one nothing is waited for: the connection's thread
        // still has to clear up.
        let (mut before, mut behind) = (usize::from(part == Part::First), usize::from(part == Part::Last));
        let mut results = conn.fetch_many(query);
        let mut stored = None;
        while stored.is_none() || behind > 0 {
            let Some(result) = results.try_next().await? else { break };
            match result {
                Either::Left(_) if before > 0 => before -= 1,
                Either::Left(_) if stored.is_some() => behind -= 1,
                Either::Left(result) => stored = Some(result.rows_affected()),
                Either::Right(_) => {}
            }
        }
        Ok(stored == Some(self.positions.len() as u64))
    }
}

fn bind<'q>(query: Bound<'q>, judged: &'q Judged) -> Bound<'q> {
    let Some((shape, write)) = &judged.write else { return query };
    let (record, Some(seen)) = (&write.effect, &judged.seen) else { return shape::bind_claim(query, write) };
    let query = row::bind_seen(query, record, seen);
    match shape {
        Shape::Renew => shape::bind_renewal(query, record),
        Shape::Settle => shape::bind_settle(query, record),
        Shape::Claim | Shape::Whole => row::bind_current(query.bind(seen.state.as_str()), record),
    }
}
