//! Which effects are called, and where their processes die.

use crate::{
    boundary::{Boundary, Stop},
    model::{CLASSES, Class, Model},
};

/// One effect whose first processes are killed, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) class: Class,
    /// The provider refuses the first request for being busy.
    pub(crate) is_busy: bool,
    pub(crate) kills: Vec<Stop>,
}

impl Scenario {
    /// The order that it is about, another for each scenario.
    pub(crate) fn order(&self) -> String {
        let kills: String = self.kills.iter().map(|(at, nth)| format!("-{at:?}{nth}")).collect();
        let busy = if self.is_busy { "-busy" } else { "" };
        format!("{:?}{busy}{kills}", self.class)
    }

    /// Whether a kill comes while the lease is renewed: the worker's lease is then so short that it soon is.
    pub(crate) fn is_renewing(&self) -> bool {
        self.kills.iter().any(|(at, _)| matches!(at, Boundary::BeforeRenewal | Boundary::AfterRenewal))
    }

    /// The effect after all its kills.
    pub(crate) fn model(&self) -> Model {
        let mut model = Model::new(self.class, self.is_busy);
        for (at, nth) in &self.kills {
            // On disk, a renewal is no step: the request is at the provider, and its answer is not here.
            let at = if self.is_renewing() { Boundary::Acted } else { *at };
            model.die_at((at, *nth));
        }
        model
    }
}

/// How much of the sweep a ledger gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// One kill at every boundary.
    Once,
    /// And a second one at every boundary of the call that recovers what was performed.
    RecoveryOfActed,
    /// And a second one at every boundary of every call that recovers.
    Recovery,
}

pub(crate) fn scenarios(depth: Depth) -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for class in CLASSES {
        let add = |is_busy, kills: &[Stop]| Scenario { class, is_busy, kills: kills.to_vec() };
        let plain = Model::new(class, false).path();
        let renewals = [(Boundary::BeforeRenewal, 1), (Boundary::AfterRenewal, 1)];
        scenarios.extend(plain.iter().chain(&renewals).map(|stop| add(false, &[*stop])));
        // Where the provider is busy the call goes another way from the first answer on.
        let busy = Model::new(class, true).path().into_iter().filter(|stop| !plain.contains(stop));
        scenarios.extend(busy.map(|stop| add(true, &[stop])));
        for first in plain {
            let is_in_depth = match depth {
                Depth::Once => false,
                Depth::RecoveryOfActed => first.0 == Boundary::Acted,
                Depth::Recovery => true,
            };
            if is_in_depth {
                let mut model = Model::new(class, false);
                model.die_at(first);
                scenarios.extend(model.path().into_iter().map(|second| add(false, &[first, second])));
            }
        }
    }
    scenarios
}

/// How many processes are killed for these.
pub(crate) fn kills(scenarios: &[Scenario]) -> usize {
    scenarios.iter().map(|scenario| scenario.kills.len()).sum()
}
