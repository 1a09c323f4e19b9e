//! The places of a call at which its process can die, and the ledger that stops there.

use std::{
    future::pending,
    io::Read,
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use effectual::{
    EffectId, Ledger, LedgerError,
    ledger::{Change, Changed, Claim, ClaimRequest, EffectHistory, Owner},
};
use effectual_tests::process::tell;

/// A boundary of a call. What comes before it is on disk, or at the provider; what comes after it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Boundary {
    BeforeClaim,
    AfterClaim,
    /// In the body, before the adapter has the request.
    BeforeSend,
    /// The provider has acted and does not answer. It is the provider that stops here, not the worker.
    Acted,
    BeforeRenewal,
    AfterRenewal,
    /// Before and after the end of an attempt that did not perform is stored, ahead of a backoff.
    BeforeEnd,
    AfterEnd,
    /// Before and after the next attempt of the same call is opened.
    BeforeOpen,
    AfterOpen,
    /// The provider was asked what happened and does not answer.
    Asked,
    BeforeSettle,
    /// The outcome is stored, and the call has not returned.
    AfterSettle,
}

pub(crate) const ALL: [Boundary; 13] = [
    Boundary::BeforeClaim,
    Boundary::AfterClaim,
    Boundary::BeforeSend,
    Boundary::Acted,
    Boundary::BeforeRenewal,
    Boundary::AfterRenewal,
    Boundary::BeforeEnd,
    Boundary::AfterEnd,
    Boundary::BeforeOpen,
    Boundary::AfterOpen,
    Boundary::Asked,
    Boundary::BeforeSettle,
    Boundary::AfterSettle,
];

/// A boundary and which passage of it, from 1: a call that tries twice sends twice.
pub(crate) type Stop = (Boundary, usize);

/// What a worker says when it stands at its boundary.
pub(crate) const STOPPED: &str = "stopped";

/// Stands still at one boundary. From then on nothing gets through any more, so that the moment of the kill says nothing.
#[derive(Debug)]
pub(crate) struct Brake {
    stop: Option<Stop>,
    /// Where it is told to go on, if it is to.
    gate: Option<String>,
    passed: AtomicUsize,
    is_stopped: AtomicBool,
}

impl Brake {
    pub(crate) fn new(stop: Option<Stop>, gate: Option<String>) -> Self {
        Self { stop, gate, passed: AtomicUsize::new(0), is_stopped: AtomicBool::new(false) }
    }

    /// Whether it stood here and was told to go on.
    pub(crate) async fn at(&self, boundary: Boundary) -> bool {
        if self.is_stopped.load(Ordering::SeqCst) {
            pending::<()>().await;
        }
        let Some((stop, nth)) = self.stop.filter(|(stop, _)| *stop == boundary) else { return false };
        if 1 + self.passed.fetch_add(1, Ordering::SeqCst) == nth {
            if let Some(gate) = &self.gate {
                wait_at(gate);
                return true;
            }
            self.is_stopped.store(true, Ordering::SeqCst);
            tell(format_args!("{STOPPED} {stop:?}"));
            pending::<()>().await;
        }
        false
    }
}

/// Stands at a gate with its thread, as a body does that computes: nothing can abort it there.
fn wait_at(gate: &str) {
    let mut stream = TcpStream::connect(gate).expect("the parent");
    stream.read_exact(&mut [0]).expect("leave to go on");
}

/// A real ledger with a brake before and after every write.
#[derive(Debug)]
pub(crate) struct Braked {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) brake: Arc<Brake>,
}

/// The boundaries around a change; `None` where there are none to stop at.
fn around(change: &Change) -> Option<(Boundary, Boundary)> {
    match change {
        Change::Renew { .. } => Some((Boundary::BeforeRenewal, Boundary::AfterRenewal)),
        Change::End { .. } => Some((Boundary::BeforeEnd, Boundary::AfterEnd)),
        Change::Open { .. } => Some((Boundary::BeforeOpen, Boundary::AfterOpen)),
        Change::Settle { .. } => Some((Boundary::BeforeSettle, Boundary::AfterSettle)),
        _ => None,
    }
}

#[async_trait]
impl Ledger for Braked {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.brake.at(Boundary::BeforeClaim).await;
        let claim = self.ledger.claim(request).await;
        self.brake.at(Boundary::AfterClaim).await;
        claim
    }

    async fn change(&self, owner: &Owner, change: &Change) -> Result<Changed, LedgerError> {
        let Some((before, after)) = around(change) else { return self.ledger.change(owner, change).await };
        self.brake.at(before).await;
        let changed = self.ledger.change(owner, change).await;
        self.brake.at(after).await;
        changed
    }

    async fn read(&self, id: &EffectId) -> Result<Option<EffectHistory>, LedgerError> {
        self.ledger.read(id).await
    }

    fn name(&self) -> &'static str {
        self.ledger.name()
    }

    async fn close(&self) {
        self.ledger.close().await;
    }
}
