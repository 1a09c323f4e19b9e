//! What an operator looks through: effects without an outcome, and how many there are.

use std::time::Duration;

use super::{handle::Executor, held::millis};
use crate::{
    descriptor::RecoveryClass,
    identity::Tenant,
    ledger::{
        EffectRecord, LedgerError, Unsettled, UnsettledCursor, UnsettledPage, UnsettledQuery,
        record::{LedgerTime, State},
    },
};

/// How many effects the ledger is asked for at a time.
const STEP: u32 = 500;

/// How many effects one listing or census looks at, whatever it finds.
const LOOKED_AT_MAX: u32 = 10_000;

/// Which effects without an outcome to list; all of them unless said.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    state: Option<State>,
    operation: Option<String>,
    tenant: Option<Tenant>,
    older_than: Option<Duration>,
    after: Option<UnsettledCursor>,
    at_most: Option<u32>,
}

impl Listing {
    /// All of them, the first 100.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Only those in this state, as stored: a claim whose lease has ended is [`Claimed`](State::Claimed) until somebody looks
    /// at it.
    #[must_use]
    pub fn state(mut self, state: State) -> Self {
        self.state = Some(state);
        self
    }

    /// Only those of this operation.
    #[must_use]
    pub fn operation(mut self, operation: impl Into<String>) -> Self {
        self.operation = Some(operation.into());
        self
    }

    /// Only those of this tenant.
    #[must_use]
    pub fn tenant(mut self, tenant: Tenant) -> Self {
        self.tenant = Some(tenant);
        self
    }

    /// Only those that were first claimed longer ago than this, by the ledger's clock.
    #[must_use]
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = Some(age);
        self
    }

    /// Goes on where the page before ended: its [`next`](UnsettledPage::next).
    #[must_use]
    pub fn after(mut self, cursor: UnsettledCursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// How many effects a page has at the most, from 1; 100 unless set.
    #[must_use]
    pub fn at_most(mut self, effects: u32) -> Self {
        self.at_most = Some(effects.max(1));
        self
    }

    fn is_young(&self, record: &EffectRecord, now: LedgerTime) -> bool {
        self.older_than.is_some_and(|age| record.created_at > now.saturating_sub(millis(age)))
    }

    fn fits(&self, record: &EffectRecord) -> bool {
        self.state.is_none_or(|state| record.state == state)
            && self.operation.as_ref().is_none_or(|operation| *record.operation == **operation)
            && self.tenant.as_ref().is_none_or(|tenant| record.id.tenant() == tenant)
    }
}

/// How many effects have no outcome, and for how long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Census {
    /// Claimed by an executor, whether its lease still runs or not.
    pub claimed: u64,
    /// Known not to have been performed, and waiting for their next call.
    pub released: u64,
    /// In doubt.
    pub escaped: u64,
    /// Of those in doubt: how many only an operator lets go on.
    pub held: u64,
    /// How long ago the oldest of all was first claimed.
    pub oldest: Option<Duration>,
    /// How long ago the oldest of those in doubt was first claimed.
    pub oldest_escaped: Option<Duration>,
    /// Whether all were counted: the count ends at 10,000, the oldest ones first, so that the ages are right all the same.
    pub is_complete: bool,
}

impl Census {
    fn count(&mut self, record: &EffectRecord, now: LedgerTime) {
        let age = Duration::from_millis(now.saturating_sub(record.created_at).max(0).unsigned_abs());
        self.oldest.get_or_insert(age);
        match record.state {
            State::Claimed => self.claimed += 1,
            State::Released => self.released += 1,
            State::Escaped => {
                self.escaped += 1;
                self.oldest_escaped.get_or_insert(age);
                let is_held = record.doubt.as_ref().is_some_and(|doubt| doubt.class == RecoveryClass::Hold);
                self.held += u64::from(is_held && record.accepted.is_none());
            }
            State::Completed => {}
        }
    }
}

impl Executor {
    /// A page of effects without an outcome, the oldest first: what an operator looks through. Looks at no more than 10,000
    /// effects, so that a page may have fewer than asked for, or none, and still say where the
    /// [`next`](UnsettledPage::next) begins.
    ///
    /// # Errors
    /// [`LedgerError`].
    ///
    /// # Cancel safety
    /// Safe: it reads.
    pub async fn unsettled(&self, listing: &Listing) -> Result<UnsettledPage, LedgerError> {
        let at_most = usize::try_from(listing.at_most.unwrap_or(100)).unwrap_or(usize::MAX);
        let mut listed: Vec<Unsettled> = Vec::new();
        let mut after = listing.after;
        let mut looked_at = 0;
        loop {
            let page = self.page(after).await?;
            looked_at += STEP;
            for found in page.effects {
                if listing.is_young(&found.effect, page.now) {
                    return Ok(UnsettledPage { effects: listed, next: None, now: page.now });
                }
                if listed.len() == at_most {
                    return Ok(UnsettledPage { effects: listed, next: after, now: page.now });
                }
                after = Some(UnsettledCursor::of(&found.effect));
                listed.extend(listing.fits(&found.effect).then_some(found));
            }
            after = page.next;
            if after.is_none() || looked_at >= LOOKED_AT_MAX {
                return Ok(UnsettledPage { effects: listed, next: after, now: page.now });
            }
        }
    }

    /// Counts the effects without an outcome. Cheap where there are few, as there should be; at most 10,000 are read.
    ///
    /// # Errors
    /// [`LedgerError`].
    ///
    /// # Cancel safety
    /// Safe: it reads.
    pub async fn census(&self) -> Result<Census, LedgerError> {
        let mut census = Census::default();
        let mut after = None;
        for _ in 0..LOOKED_AT_MAX / STEP {
            let page = self.page(after).await?;
            page.effects.iter().for_each(|found| census.count(&found.effect, page.now));
            after = page.next;
            if after.is_none() {
                census.is_complete = true;
                break;
            }
        }
        Ok(census)
    }

    async fn page(&self, after: Option<UnsettledCursor>) -> Result<UnsettledPage, LedgerError> {
        self.core.ledger().unsettled(&UnsettledQuery { due_only: false, after, limit: STEP }).await
    }
}
