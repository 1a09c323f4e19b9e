//! Paging by what a reader knows already: `?limit=…&after=…`, and the `Link` that leads on.

use std::num::NonZeroUsize;

use super::problem::Problem;
use crate::ledger::{RunCursor, RunPage};

/// The most rows of one page, and how many there are where `after` comes alone.
const ROWS_MAX: NonZeroUsize = NonZeroUsize::new(1_000).expect("more than none");

/// The page that a query asks for; `None` where it asks for the whole list.
pub(super) fn asked(query: &str) -> Result<Option<RunPage>, Problem> {
    let (mut limit, mut after) = (None, None);
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let wanted = match name {
            "limit" => &mut limit,
            "after" => &mut after,
            _ => continue,
        };
        if wanted.replace(value).is_some() {
            return Err(wrong("a parameter is given twice"));
        }
    }
    if limit.is_none() && after.is_none() {
        return Ok(None);
    }
    let rows_max = match limit {
        None => ROWS_MAX,
        Some(limit) => limit
            .parse()
            .ok()
            .filter(|limit| *limit <= ROWS_MAX)
            .ok_or_else(|| wrong("`limit` is a number from 1 to 1000"))?,
    };
    let after = after
        .map(|text| cursor(text).ok_or_else(|| wrong("`after` is what a `Link` header gave, unchanged")))
        .transpose()?;
    Ok(Some(RunPage { after, rows_max }))
}

/// The `Link` header of a page that ends with this row, relative to the request's own address: right behind any prefix
/// and any proxy.
pub(super) fn next(page: &RunPage, last: &RunCursor) -> String {
    let digest = blake3::Hash::from_bytes(last.digest).to_hex();
    format!("<?limit={}&after={}.{}.{digest}>; rel=\"next\"", page.rows_max, last.at, last.attempt)
}

fn cursor(text: &str) -> Option<RunCursor> {
    let mut parts = text.split('.');
    let cursor = RunCursor {
        at: parts.next()?.parse().ok()?,
        attempt: parts.next()?.parse().ok()?,
        digest: blake3::Hash::from_hex(parts.next()?).ok()?.into(),
    };
    parts.next().is_none().then_some(cursor)
}

fn wrong(message: &'static str) -> Problem {
    Problem::validation(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_the_next_page() {
        assert_eq!(asked("").expect("no parameter"), None);
        assert_eq!(asked("limits=3&x").expect("none of ours"), None);
        let first = asked("limit=7").expect("a limit").expect("a page");
        assert_eq!((first.rows_max.get(), first.after), (7, None));
        let last = RunCursor { at: -5, attempt: 3, digest: [0xab; 32] };
        let link = next(&first, &last);
        let query = link.strip_prefix("<?").and_then(|link| link.strip_suffix(">; rel=\"next\""));
        let second = asked(query.expect("a link")).expect("what a link gave");
        assert_eq!(second, Some(RunPage { after: Some(last), ..first }));
    }

    #[test]
    fn what_no_link_gave_is_refused() {
        let digest = "ab".repeat(32);
        for query in [
            "limit=0",
            "limit=1001",
            "limit=-1",
            "limit=",
            "limit=1&limit=2",
            "limit=99999999999999999999",
            "after=",
            "after=1.1",
            &format!("after=1.1.{digest}.1"),
            &format!("after=1.-1.{digest}"),
            &format!("after=x.1.{digest}"),
            "after=1.1.abc",
            "after=1&after=2",
        ] {
            let problem = asked(query).expect_err(query);
            assert_eq!(problem.error(), "validation_error", "{query}");
        }
    }
}
