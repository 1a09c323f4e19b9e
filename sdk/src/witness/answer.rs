//! The answer: a page, or the whole list as a stream that holds one page of it at a time.

use std::num::NonZeroUsize;

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::Response,
};
use futures_util::stream;

use super::{page, problem::Problem, view::Writer};
use crate::{
    identity::RunId,
    ledger::{Ledger, LedgerError, LedgerErrorKind, RunCursor, RunPage, RunRow},
};

/// How many rows of a whole list are in memory at a time.
const ROWS_HELD: NonZeroUsize = NonZeroUsize::new(5_000).expect("more than none");

/// Whoever has the ledger that lists the run.
pub(super) trait Lists: Send + Sync + 'static {
    fn ledger(&self) -> &dyn Ledger;
}

/// One page, and a link to the next if there is one.
pub(super) async fn page(lists: &impl Lists, run: &RunId, asked: &RunPage) -> Result<Response, Problem> {
    // One more than asked for tells whether there is a next page.
    let more = RunPage { rows_max: asked.rows_max.saturating_add(1), ..*asked };
    let mut rows = lists.ledger().of_run(run, &more).await.map_err(|error| unlisted(&error))?;
    let is_last = rows.len() <= asked.rows_max.get();
    rows.truncate(asked.rows_max.get());
    let mut response = json(Body::from(written(run, &rows)));
    if let Some(last) = rows.last().filter(|_| !is_last) {
        let link =
            HeaderValue::try_from(page::next(asked, &last.cursor())).map_err(|_| Problem::internal())?;
        response.headers_mut().insert(header::LINK, link);
    }
    Ok(response)
}

/// The whole list. The first piece is read before anything is answered, so that trouble with the ledger has its status;
/// trouble after that breaks the connection off, and no reader takes the beginning for the whole.
pub(super) async fn whole<L: Lists>(lists: L, run: RunId) -> Result<Response, Problem> {
    let first = piece(&lists, &run, None).await.map_err(|error| unlisted(&error))?;
    if first.len() < ROWS_HELD.get() {
        return Ok(json(Body::from(written(&run, &first))));
    }
    let mut writer = Writer::new();
    let mut begun = Writer::begin(&run);
    writer.add(&mut begun, &first);
    let from = first.last().map(RunRow::cursor);
    let rest =
        stream::try_unfold(Some(Rest { lists, run, writer, from, begun }), async |rest: Option<Rest<L>>| {
            match rest {
                None => Ok(None),
                Some(rest) => rest.next().await.map(Some),
            }
        });
    Ok(json(Body::from_stream(rest)))
}

/// What is left of a list that is being sent.
struct Rest<L> {
    lists: L,
    run: RunId,
    writer: Writer,
    from: Option<RunCursor>,
    /// What was written and not sent.
    begun: String,
}

impl<L: Lists> Rest<L> {
    async fn next(mut self) -> Result<(String, Option<Self>), LedgerError> {
        if !self.begun.is_empty() {
            return Ok((std::mem::take(&mut self.begun), Some(self)));
        }
        let rows = piece(&self.lists, &self.run, self.from).await?;
        let mut text = String::new();
        self.writer.add(&mut text, &rows);
        if rows.len() < ROWS_HELD.get() {
            text.push_str(Writer::end());
            return Ok((text, None));
        }
        self.from = rows.last().map(RunRow::cursor);
        Ok((text, Some(self)))
    }
}

async fn piece(
    lists: &impl Lists,
    run: &RunId,
    after: Option<RunCursor>,
) -> Result<Vec<RunRow>, LedgerError> {
    lists.ledger().of_run(run, &RunPage { after, rows_max: ROWS_HELD }).await
}

fn written(run: &RunId, rows: &[RunRow]) -> String {
    let mut text = Writer::begin(run);
    Writer::new().add(&mut text, rows);
    text.push_str(Writer::end());
    text
}

fn unlisted(error: &LedgerError) -> Problem {
    match error.kind() {
        LedgerErrorKind::Corrupt | LedgerErrorKind::Unsupported => Problem::internal(),
        _ => Problem::unavailable("the ledger cannot be read now; nothing was changed: try again"),
    }
}

fn json(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
