//! A claim that this process holds: what is left of its lease, and the row as last seen.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::{
    clock::{Moment, Until},
    identity::EffectId,
    ledger::{
        Change, Changed, EffectRecord, Ledger, LedgerError, LedgerErrorKind, Owner,
        record::{Fence, State},
    },
    provider::SendRefused,
};

/// A claim that is held, shared between the call, its body and the renewer.
pub(crate) struct Held {
    ledger: Arc<dyn Ledger>,
    id: EffectId,
    fence: Fence,
    lease: Duration,
    /// How much of the lease a request may not eat into: the attempt's timeout and the margin.
    reserve: Duration,
    inner: Mutex<Inner>,
    /// The drain deadline has passed: nothing is sent any more.
    revoked: AtomicBool,
    /// A renewal was refused: somebody else owns the effect.
    lost: AtomicBool,
    /// A renewal is under way.
    renewing: AtomicBool,
}

struct Inner {
    record: Arc<EffectRecord>,
    /// Taken before the claim, or its last confirmed renewal, was sent.
    confirmed: Moment,
}

impl Held {
    pub(crate) fn new(
        ledger: Arc<dyn Ledger>,
        record: Arc<EffectRecord>,
        sent: Moment,
        lease: Duration,
        reserve: Duration,
    ) -> Self {
        Self {
            ledger,
            id: record.id.clone(),
            fence: record.fence,
            lease,
            reserve,
            inner: Mutex::new(Inner { record, confirmed: sent }),
            revoked: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            renewing: AtomicBool::new(false),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn id(&self) -> &EffectId {
        &self.id
    }

    pub(crate) fn fence(&self) -> Fence {
        self.fence
    }

    pub(crate) fn owner(&self) -> Owner {
        Owner::of_shared(self.record())
    }

    pub(crate) fn record(&self) -> Arc<EffectRecord> {
        Arc::clone(&self.inner().record)
    }

    pub(crate) fn revoke(&self) {
        self.revoked.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::SeqCst)
    }

    pub(crate) fn remaining(&self) -> Duration {
        Until::new(self.inner().confirmed, self.lease).remaining()
    }

    /// Whether a request that starts now ends while the claim still authorises it.
    pub(crate) fn may_send(&self) -> Result<(), SendRefused> {
        if rule!(DrainRevokesPermits) && self.is_revoked() {
            return Err(SendRefused::Draining);
        }
        let too_short = rule!(PermitNeedsTheLease) && self.remaining() <= self.reserve;
        if too_short || self.lost.load(Ordering::SeqCst) {
            return Err(SendRefused::LeaseTooShort);
        }
        Ok(())
    }

    /// Whether a renewal is due: a third of the lease has passed.
    pub(crate) fn renewal_due(&self) -> bool {
        !self.lost.load(Ordering::SeqCst) && self.remaining() <= self.lease - self.lease / 3
    }

    /// Whether the caller is the one to renew now; then it ends with [`end_renewal`](Self::end_renewal).
    pub(crate) fn begin_renewal(&self) -> bool {
        !self.renewing.swap(true, Ordering::SeqCst)
    }

    pub(crate) fn end_renewal(&self) {
        self.renewing.store(false, Ordering::SeqCst);
    }

    /// Renews the lease. A failing ledger is tried again at the next tick: the lease goes on as long as it lasts.
    pub(crate) async fn renew(&self) -> Result<(), LedgerError> {
        let sent = Moment::now();
        match self.change(&Change::Renew { lease_ms: millis(self.lease) }).await? {
            Changed::Applied(_) => self.confirmed(sent),
            // The same fence means that our own next attempt passed this renewal.
            Changed::Stale(Some(record)) if record.fence == self.fence => {}
            Changed::Stale(_) => self.lost.store(true, Ordering::SeqCst),
        }
        Ok(())
    }

    /// Makes a change as the owner, and keeps the row that came back.
    pub(crate) async fn change(&self, change: &Change) -> Result<Changed, LedgerError> {
        let changed = self.ledger().change(&self.owner(), change).await?;
        if let Changed::Applied(record) = &changed {
            self.adopt(Arc::clone(record));
        }
        Ok(changed)
    }

    pub(crate) fn adopt(&self, record: Arc<EffectRecord>) {
        let mut inner = self.inner();
        // A renewal and a change of the call may pass each other; the later row counts.
        if record.revision >= inner.record.revision {
            inner.record = record;
        }
    }

    pub(crate) fn ledger(&self) -> &dyn Ledger {
        &*self.ledger
    }

    /// [`change`](Self::change) for a call that has gone away. An attempt that it was about to open, and whose body never
    /// started, is its own too.
    pub(crate) async fn last_change(&self, change: &Change) -> Result<(), LedgerError> {
        let Changed::Stale(Some(record)) = self.change(change).await? else { return Ok(()) };
        let opened = record.fence == self.fence && record.state == State::Claimed && record.end.is_none();
        if opened {
            self.ledger().change(&Owner::of_shared(record), change).await?;
        }
        Ok(())
    }

    pub(crate) async fn accept(&self, handle: String, poll_after: Duration) -> Result<(), LedgerError> {
        match self.change(&Change::Accept { handle, poll_after_ms: millis(poll_after) }).await? {
            Changed::Applied(_) => Ok(()),
            Changed::Stale(_) => Err(LedgerError::new(
                LedgerErrorKind::Closed,
                "another executor has taken this effect over; the handle was not stored",
            )),
        }
    }

    /// Counts the time from `sent`: a change that extended the lease was confirmed.
    pub(crate) fn confirmed(&self, sent: Moment) {
        self.inner().confirmed = if rule!(LeaseCountsFromTheRequest) { sent } else { Moment::now() };
    }
}

/// Whole milliseconds, as the ledger counts them: at the most some 35,000 years, far from the end of its range.
pub(crate) fn millis(duration: Duration) -> i64 {
    const MAX: i64 = 1 << 50;
    i64::try_from(duration.as_millis()).unwrap_or(MAX).min(MAX)
}
