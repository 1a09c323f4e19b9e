//! What a deployment says of regions, and how records that two regions wrote for one request become one.
//!
//! The [page on regions](crate::docs::multi_region) has the reasons.

mod convergence;

pub use convergence::{Convergence, ConvergenceError, RegionalRecord, converge};

use crate::ledger::Ledger;

/// The deployment's posture towards regions: a constant of the deployment, and no promise to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrossRegion {
    /// One region serves the deployment.
    SingleRegion,
    /// Several regions accept requests, and records that conflict are [converged](converge) afterwards. Effects that two
    /// regions performed in the meantime stay performed.
    ReconciledRecords,
    /// An effect is issued only under a fence of a store that is linearizable across regions, or to a provider that
    /// deduplicates on the stable key.
    FencedEffects,
}

impl CrossRegion {
    /// The name that a discovery document uses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SingleRegion => "single-region",
            Self::ReconciledRecords => "reconciled-records",
            Self::FencedEffects => "fenced-effects",
        }
    }
}

/// Both facets of a deployment. Made once, at the start; nothing changes it afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regions {
    cross_region: CrossRegion,
    multi_region: bool,
}

/// A claim that the ledger does not bear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegionsError {
    /// What is claimed needs a ledger that is linearizable across regions.
    #[error(
        "`{claim}` needs a ledger that is linearizable across regions, and the {ledger} ledger does not say that it is: \
         nothing was advertised; use one that is, or claim less"
    )]
    NotLinearizable {
        /// What was claimed.
        claim: &'static str,
        /// The ledger's name.
        ledger: &'static str,
    },
    /// One region cannot behave as several.
    #[error("`multiRegion` contradicts `single-region`: nothing was advertised; name the posture that holds")]
    SingleRegion,
}

impl Regions {
    /// One region, and no claim on any other: what holds for every ledger.
    pub const SINGLE: Self = Self { cross_region: CrossRegion::SingleRegion, multi_region: false };

    /// This posture, with no claim on how requests in two regions behave.
    ///
    /// # Errors
    /// [`RegionsError`] for [`FencedEffects`](CrossRegion::FencedEffects) on a ledger that does not say that it is
    /// [linearizable](Ledger::linearizable_across_regions).
    pub fn new(cross_region: CrossRegion, ledger: &dyn Ledger) -> Result<Self, RegionsError> {
        if cross_region == CrossRegion::FencedEffects {
            linearizable(cross_region.as_str(), ledger)?;
        }
        Ok(Self { cross_region, multi_region: false })
    }

    /// The same, with the claim that both layers hold across regions.
    ///
    /// # Errors
    /// [`RegionsError`] on a ledger that does not say that it is
    /// [linearizable](Ledger::linearizable_across_regions), or in a single region.
    pub fn with_multi_region(self, ledger: &dyn Ledger) -> Result<Self, RegionsError> {
        if self.cross_region == CrossRegion::SingleRegion {
            return Err(RegionsError::SingleRegion);
        }
        linearizable("multiRegion", ledger)?;
        Ok(Self { multi_region: true, ..self })
    }

    /// The posture.
    #[must_use]
    pub const fn cross_region(&self) -> CrossRegion {
        self.cross_region
    }

    /// Whether both layers hold across regions.
    #[must_use]
    pub const fn multi_region(&self) -> bool {
        self.multi_region
    }
}

impl Default for Regions {
    fn default() -> Self {
        Self::SINGLE
    }
}

fn linearizable(claim: &'static str, ledger: &dyn Ledger) -> Result<(), RegionsError> {
    if ledger.linearizable_across_regions() {
        return Ok(());
    }
    Err(RegionsError::NotLinearizable { claim, ledger: ledger.name() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::MemoryLedger;

    #[test]
    fn no_claim_on_several_regions_without_a_ledger_that_bears_it() {
        let memory = MemoryLedger::new();
        for posture in [CrossRegion::SingleRegion, CrossRegion::ReconciledRecords] {
            let regions = Regions::new(posture, &memory).expect("a posture that every ledger bears");
            assert_eq!((regions.cross_region(), regions.multi_region()), (posture, false));
        }
        let refused = |claim| Err(RegionsError::NotLinearizable { claim, ledger: "memory" });
        assert_eq!(Regions::new(CrossRegion::FencedEffects, &memory), refused("fenced-effects"));
        let reconciled = Regions::new(CrossRegion::ReconciledRecords, &memory).expect("a posture");
        assert_eq!(reconciled.with_multi_region(&memory), refused("multiRegion"));
        assert_eq!(Regions::default().with_multi_region(&memory), Err(RegionsError::SingleRegion));
    }

    #[test]
    fn postures_have_the_names_of_the_specification() {
        for (posture, name) in [
            (CrossRegion::SingleRegion, "single-region"),
            (CrossRegion::ReconciledRecords, "reconciled-records"),
            (CrossRegion::FencedEffects, "fenced-effects"),
        ] {
            assert_eq!(posture.as_str(), name);
            assert_eq!(serde_json::to_value(posture).expect("a name"), name);
        }
    }
}
