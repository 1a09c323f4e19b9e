//! The executor as its user holds it.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    builder::ExecutorBuilder,
    core::{Core, Phase},
    recovery::{RecoveryReport, pass},
    scope::{Scope, TenantScope},
};
use crate::{
    identity::{EffectId, InvalidId, Tenant},
    ledger::{By, EffectHistory, Forgot, Ledger, LedgerError},
};

/// How long bodies that were aborted at the drain deadline have to be written down.
const AFTER_DEADLINE: Duration = Duration::from_secs(5);

/// Performs effects: one for each ledger and process. Clones share everything.
#[derive(Clone)]
pub struct Executor {
    pub(super) core: Arc<Core>,
}

/// What a drain came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// How many claims were still held at the deadline. Their bodies were aborted and their effects labelled escaped,
    /// unless it is known that they did not act.
    pub unfinished: usize,
    /// How many of those could not even be written down, because the ledger did not answer in time.
    pub unwritten: usize,
}

impl Executor {
    /// Starts making an executor over a ledger; a shared one is given as `Arc<dyn Ledger>`.
    pub fn builder(ledger: impl Ledger) -> ExecutorBuilder {
        ExecutorBuilder::new(Arc::new(ledger))
    }

    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Where calls for a tenant are made, outside any run. Takes a [`Tenant`], or its text: 1 to 128 of
    /// `A-Z a-z 0-9 . _ ~ -`, with or without `anon:` before them.
    ///
    /// # Errors
    /// [`InvalidId`] if the text is no tenant.
    pub fn tenant<T>(&self, tenant: T) -> Result<TenantScope, InvalidId>
    where
        T: TryInto<Tenant>,
        InvalidId: From<T::Error>,
    {
        Ok(TenantScope(Scope::new(self.core.clone(), tenant.try_into()?)))
    }

    /// Everything that the ledger knows of one effect: attempts, doubt, evidence, and what
    /// operators did. `None` if it was never claimed. Where its
    /// [key has changed](crate::identity#changing-a-key), any of its identities finds it.
    ///
    /// # Errors
    /// [`LedgerError`].
    ///
    /// # Cancel safety
    /// Safe: it reads.
    pub async fn inspect(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.core.ledger().read(id).await
    }

    /// Forgets what is stored of one completed effect before its time, for a privacy job: its value, its evidence, its stored input
    /// and its readable key. What is left is a tombstone, so that later calls get
    /// [`Expired`](crate::ErrorKind::Expired) and perform nothing, and a line in the audit of who did it and why, neither of which
    /// should name the person concerned. Any of the effect's identities finds it. Another process that keeps outcomes in an
    /// [`OutcomeCache`](crate::OutcomeCache) may answer by it for as long as it keeps one.
    ///
    /// # Errors
    /// [`LedgerError`]; call again, which is safe.
    ///
    /// # Cancel safety
    /// Dropped before it resolves, it may or may not have forgotten; calling again tells.
    pub async fn forget(&self, id: &EffectId, by: &By) -> Result<Forgot, LedgerError> {
        let own = match self.core.outcomes.are_kept() {
            // Outcomes are kept under their effects' own identities.
            true => self.core.ledger().read(id).await?.map(|history| history.effect.id),
            false => None,
        };
        let _overruling = self.core.outcomes.overruling(own.unwrap_or_else(|| id.clone()));
        self.core.ledger().forget(id, by).await
    }

    /// Makes one pass over the effects that were left behind, now and whatever [`Recovery`](crate::Recovery) says of the
    /// automatic ones, and returns when what it took up has ended. Bounded: it goes on where the last pass stopped.
    ///
    /// # Errors
    /// [`LedgerError`]: the ledger did not list them. What was taken up before that goes on.
    ///
    /// # Cancel safety
    /// What was taken up goes on.
    pub async fn recover(&self) -> Result<RecoveryReport, LedgerError> {
        pass(&self.core).await
    }

    /// What all passes of this executor came to so far.
    #[must_use]
    pub fn recovered(&self) -> RecoveryReport {
        self.core.recoveries.total()
    }

    /// Ends the work: no new effects are taken, none is recovered, running bodies go on and are renewed until they end or the
    /// time is over. Then nothing is sent any more, bodies are aborted, and what may have acted is labelled escaped. The ledger stays
    /// open.
    ///
    /// # Cancel safety
    /// The executor goes on refusing new effects; call it again to wait on.
    pub async fn drain(&self, within: Duration) -> Drained {
        self.core.set_phase(Phase::Draining);
        let unfinished = self.core.idle(within).await;
        self.core.revoke_all();
        self.core.set_phase(Phase::Over);
        // Once more, for a claim that came in between.
        self.core.revoke_all();
        let unwritten = if unfinished == 0 { 0 } else { self.core.idle(AFTER_DEADLINE).await };
        Drained { unfinished, unwritten }
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("ledger", &self.core.ledger().name()).finish_non_exhaustive()
    }
}
