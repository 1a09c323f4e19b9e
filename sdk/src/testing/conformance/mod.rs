//! The rules that every ledger keeps, one function each.
//!
//! A ledger of one's own passes when [`run_all`] returns. All rules use identities of their own, so that one ledger
//! serves them all, also one that is in use (those on retention forget what is past its own, and remove tombstones of more than 10
//! years); [`closing::a_closed_ledger_says_so`] ends the ledger and comes last. Leases
//! in them are tens of milliseconds long, and what has to pass is waited for by asking the ledger.

pub mod claims;
pub mod closing;
pub mod concurrency;
pub mod doubt;
pub mod ends;
pub mod identities;
pub mod mismatch;
pub mod operators;
pub mod recovery;
pub mod retention;
pub mod runs;
pub mod settling;
mod support;
pub mod takeover;
pub mod transactions;
pub mod unsettled;

use std::{pin::Pin, sync::Arc};

use crate::Ledger;

type Running<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// One rule.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name: what must hold.
    pub name: &'static str,
    run: for<'a> fn(&'a dyn Ledger) -> Running<'a>,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Rule {
    /// Holds the ledger against the rule.
    ///
    /// # Panics
    /// Where the ledger breaks it.
    pub async fn check(&self, ledger: &dyn Ledger) {
        (self.run)(ledger).await;
    }
}

macro_rules! rules {
    ($($topic:ident { $($rule:ident),+ $(,)? })+) => {
        /// Every rule that leaves the ledger open.
        #[must_use]
        pub fn rules() -> Vec<Rule> {
            vec![$($(Rule {
                name: concat!(stringify!($topic), "::", stringify!($rule)),
                run: |ledger| Box::pin($topic::$rule(ledger)),
            }),+),+]
        }
    };
}

rules! {
    claims {
        a_first_claim_wins,
        everything_of_a_claim_is_kept,
        a_claim_finds_its_own_token,
        a_second_claim_is_told_how_long_the_lease_runs,
        a_stored_outcome_is_replayed,
        the_stored_provider_key_stays,
        an_outcome_past_its_retention_is_expired,
        what_was_never_claimed_is_unknown,
    }
    identities {
        a_raised_version_finds_an_earlier_record,
        an_earlier_version_finds_a_later_claim,
        an_earlier_record_that_cannot_prove_it_is_ambiguous,
        an_earlier_identity_belongs_to_one_effect,
        of_both_versions_at_once_one_wins,
    }
    mismatch {
        a_mismatch_is_judged_before_every_state,
        an_argument_that_one_side_lacks_proves_nothing,
    }
    settling {
        a_settle_is_judged_by_fence_and_token_and_not_by_time,
        a_settle_after_a_label_still_counts,
        a_settle_finds_its_own_outcome,
        a_replay_says_what_the_clock_is,
        any_bytes_come_back_as_they_were,
        an_absent_payload_keeps_its_reason,
        a_refusal_is_an_outcome,
        an_outcome_may_be_kept_for_ever,
        an_outcome_is_not_changed_by_what_comes_later,
    }
    takeover {
        a_takeover_waits_for_the_lease_and_writes_the_history,
        a_renewal_extends_the_lease,
        a_stale_owner_changes_nothing,
        an_earlier_attempt_of_the_same_claim_changes_nothing,
        a_stale_answer_is_kept_as_evidence,
        two_successes_are_marked,
        an_outdated_view_of_the_row_is_not_believed,
    }
    recovery {
        hold_is_never_performed_again,
        rerun_is_performed_again,
        resend_is_sent_again_within_its_window,
        resend_outside_its_window_is_held_or_looked_up,
        resend_waits_until_the_doubtful_attempt_cannot_act,
        reconcile_is_looked_up_first,
        a_look_up_that_finds_nothing_opens_the_next_attempt,
        a_look_up_does_not_outweigh_a_late_success,
        several_attempts_in_doubt_are_judged_by_the_strictest,
    }
    doubt {
        a_later_not_performed_does_not_erase_a_doubt,
        a_labelled_attempts_own_not_performed_clears_its_doubt,
        a_labelled_attempt_that_would_keep_its_claim_is_released,
        a_not_performed_behind_a_raised_fence_clears_nothing,
        a_refusal_under_an_older_doubt_is_evidence,
        a_conclusive_refusal_ends_a_doubt,
        a_success_ends_a_doubt,
    }
    ends {
        a_released_effect_is_claimed_as_a_new_attempt,
        an_end_may_keep_the_claim_for_the_next_attempt,
        an_open_finds_its_own_token,
        a_delay_is_kept_to,
        an_accepted_effect_gives_its_handle,
        an_accepted_effect_is_not_submitted_again,
        an_unknown_end_escapes_and_keeps_what_was_sent,
        a_labelled_claim_keeps_its_lease,
    }
    unsettled {
        pages_list_every_unsettled_effect_once,
        a_claim_is_due_when_its_lease_has_ended,
        a_doubt_is_due_unless_it_is_held,
        a_released_effect_is_due_where_its_arguments_are_stored,
        an_accepted_effect_is_due_when_it_is_to_be_asked,
        who_cannot_perform_opens_no_attempt,
        what_is_found_absent_is_released,
        a_poll_is_a_claim,
    }
    operators {
        a_resolution_as_done_is_the_outcome,
        a_resolution_as_refused_is_the_outcome,
        what_never_happened_is_performed_by_the_next_claim,
        never_happened_waits_until_nothing_can_arrive,
        only_what_is_in_doubt_is_resolved,
        a_claim_whose_lease_ended_is_resolved,
        an_accepted_effect_is_resolved,
        a_resolution_finds_its_own_token,
        a_late_success_outweighs_never_happened,
        a_late_success_during_the_next_attempt_is_not_forgotten,
        a_late_success_beside_done_is_the_same_success,
        a_refusal_is_opened_again,
        of_16_resolutions_at_once_one_is_stored,
    }
    retention {
        what_is_past_its_retention_becomes_a_tombstone,
        what_is_within_its_retention_is_kept,
        an_effect_without_an_outcome_is_never_swept,
        a_batch_takes_no_more_than_it_may_and_the_oldest_first,
        evidence_is_forgotten_with_its_effect_and_does_not_come_back,
        a_removed_tombstone_leaves_nothing_behind,
        a_tombstone_is_kept_for_as_long_as_is_said,
        one_effect_is_forgotten_before_its_time,
        sweeps_and_claims_at_once_disturb_nobody,
    }
    transactions {
        what_was_not_committed_is_performed_by_the_next_claim,
        a_transactional_attempt_adds_no_doubt_and_ends_none,
        who_cannot_perform_it_releases_what_was_not_committed,
        a_label_leaves_a_transactional_claim_as_it_is,
        a_settle_in_a_transaction_is_the_outcome,
        a_stale_settle_in_a_transaction_leaves_nothing,
        a_transaction_that_is_not_settled_leaves_nothing,
    }
    runs {
        a_run_without_effects_lists_none,
        a_run_lists_each_of_its_attempts,
        an_attempt_belongs_to_the_run_that_made_it,
        a_run_lists_what_it_met_once,
        a_run_that_looks_has_met_the_effect,
        an_attempt_takes_the_place_of_a_touch,
        pages_follow_on_each_other,
    }
    concurrency {
        of_64_claims_at_once_one_wins,
        a_crowd_of_everything_is_answered_one_by_one,
    }
}

/// Holds the ledger against every rule, then closes it and checks that too. Takes a few seconds with a ledger on disk; call it
/// on a Tokio runtime with time enabled.
///
/// # Panics
/// Where the ledger breaks a rule, with the names of all that it breaks.
pub async fn run_all(ledger: Arc<dyn Ledger>) {
    let mut broken = Vec::new();
    for rule in rules() {
        let ledger = Arc::clone(&ledger);
        if tokio::spawn(async move { rule.check(&*ledger).await }).await.is_err() {
            broken.push(rule.name);
        }
    }
    assert!(broken.is_empty(), "the {} ledger breaks {broken:?}", ledger.name());
    closing::a_closed_ledger_says_so(&*ledger).await;
}

/// The two ledgers that need no server, in the crate's own test binary, which the mutation table runs.
#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_ledger_in_memory_keeps_every_rule() {
        run_all(Arc::new(crate::MemoryLedger::new())).await;
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_ledger_in_a_file_keeps_every_rule() {
        let folder = tempfile::tempdir().expect("a folder");
        let ledger = crate::SqliteLedger::open(folder.path().join("ledger.db")).await.expect("a new ledger");
        run_all(Arc::new(ledger)).await;
    }
}
