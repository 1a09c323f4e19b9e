//! Which of the records that regions wrote for one request survives.

use std::fmt;

/// What one region recorded for a request: the run that it made for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RegionalRecord<'a> {
    /// Whose request it was.
    pub tenant: &'a str,
    /// The canonical endpoint, such as `POST /runs`.
    pub endpoint: &'a str,
    /// The caller's idempotency key.
    pub key: &'a str,
    /// Where it was recorded.
    pub region: &'a str,
    /// The run that the region made.
    pub run: &'a str,
}

impl fmt::Debug for RegionalRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A caller's key is not for logs.
        f.debug_struct("RegionalRecord")
            .field("region", &self.region)
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

/// What becomes of the records of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Convergence<'a> {
    /// The record that stays, and that the records of all regions lead to from now on.
    pub survivor: RegionalRecord<'a>,
    /// The records of other runs, by run and region: each of these runs is cancelled.
    pub lost: Vec<RegionalRecord<'a>>,
}

/// Records that cannot be converged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConvergenceError {
    /// There are fewer than two.
    #[error("there are fewer than two records: there is nothing to converge")]
    NoConflict,
    /// They are of more than one request.
    #[error(
        "the records differ in tenant, endpoint or key: they are of more than one request, and all of them stay"
    )]
    SeveralRequests,
}

/// The record that survives of those that several regions wrote for one request: the one whose run id comes first by its
/// bytes. Every region finds the same one from the same records, in whatever order they come, without asking another.
///
/// It is a rule for records. What it says authorises no effect and undoes none: a run goes on only under claims of the
/// ledger, the survivor's too.
///
/// # Errors
/// [`ConvergenceError`]; every record stays as it is.
pub fn converge<'a>(records: &[RegionalRecord<'a>]) -> Result<Convergence<'a>, ConvergenceError> {
    let [first, others @ ..] = records else { return Err(ConvergenceError::NoConflict) };
    if others.is_empty() {
        return Err(ConvergenceError::NoConflict);
    }
    let request = |record: &RegionalRecord<'a>| (record.tenant, record.endpoint, record.key);
    if others.iter().any(|other| request(other) != request(first)) {
        return Err(ConvergenceError::SeveralRequests);
    }
    let mut sorted = records.to_vec();
    sorted.sort_by_key(|record| (record.run, record.region));
    let survivor = sorted[0];
    sorted.retain(|record| record.run != survivor.run);
    Ok(Convergence { survivor, lost: sorted })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(run: &'static str, region: &'static str) -> RegionalRecord<'static> {
        RegionalRecord { tenant: "acme", endpoint: "POST /runs", key: "key", region, run }
    }

    #[test]
    fn the_first_run_by_its_bytes_survives_in_every_order() {
        let [a, b, c] = [record("a-2", "west"), record("a-10", "east"), record("B", "south")];
        let expected = Ok(Convergence { survivor: c, lost: vec![b, a] });
        for records in [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]] {
            assert_eq!(converge(&records), expected);
        }
    }

    #[test]
    fn a_run_that_several_regions_recorded_is_not_lost() {
        let [one, copy, other] = [record("a", "east"), record("a", "west"), record("b", "west")];
        assert_eq!(converge(&[copy, other, one]), Ok(Convergence { survivor: one, lost: vec![other] }));
        assert_eq!(converge(&[copy, one]), Ok(Convergence { survivor: one, lost: vec![] }));
    }

    #[test]
    fn converging_again_changes_nothing() {
        let records = [record("c", "east"), record("a", "west"), record("b", "south")];
        let once = converge(&records).expect("a conflict");
        let redirected = records.map(|record| RegionalRecord { run: once.survivor.run, ..record });
        let again = converge(&redirected).expect("still two records");
        assert_eq!((again.survivor.run, again.lost), (once.survivor.run, vec![]));
    }

    #[test]
    fn what_is_no_conflict_is_left_alone() {
        let one = record("a", "east");
        assert_eq!(converge(&[]), Err(ConvergenceError::NoConflict));
        assert_eq!(converge(&[one]), Err(ConvergenceError::NoConflict));
        for other in [
            RegionalRecord { tenant: "globex", ..one },
            RegionalRecord { endpoint: "POST /refunds", ..one },
            RegionalRecord { key: "another", ..one },
        ] {
            assert_eq!(converge(&[one, other]), Err(ConvergenceError::SeveralRequests));
        }
        assert!(!format!("{one:?}").contains("key"), "the key is not shown");
    }
}
