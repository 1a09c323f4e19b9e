//! What the layers of all routes share: the store, the renewals, who waits for whom, the sweep.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::Extensions;

use super::{keeper::Keeper, settings::SettingsError, waiters::Waiters};
use crate::{clock::Moment, identity::Tenant, ledger::requests::RequestStore, telemetry};

pub(super) type TenantSource = Arc<dyn Fn(&Extensions) -> Option<Tenant> + Send + Sync>;

const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// How many records one statement drops, and how often it is repeated in a row.
const SWEEP_MAX: u32 = 500;
const SWEEPS_MAX: u32 = 1000;

pub(super) struct Parts {
    pub(super) store: Arc<dyn RequestStore>,
    pub(super) tenant: TenantSource,
}

pub(super) struct Shared {
    pub(super) store: Arc<dyn RequestStore>,
    pub(super) tenant: TenantSource,
    pub(super) keeper: Keeper,
    pub(super) waiters: Waiters,
    swept: Mutex<Moment>,
}

impl Shared {
    pub(super) fn start(parts: Parts) -> Result<Self, SettingsError> {
        let keeper = Keeper::start().map_err(|error| {
            SettingsError(format!("the system gave no thread for the renewals of request records: {error}"))
        })?;
        let Parts { store, tenant } = parts;
        Ok(Self { store, tenant, keeper, waiters: Waiters::default(), swept: Mutex::new(Moment::now()) })
    }

    /// Drops what is over its retention, now and then, beside the request that happens to come along.
    pub(super) fn sweep_if_due(&self) {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if swept.elapsed() < SWEEP_EVERY {
            return;
        }
        *swept = Moment::now();
        let store = Arc::clone(&self.store);
        self.keeper.spawn(async move {
            for _ in 0..SWEEPS_MAX {
                match store.sweep(SWEEP_MAX).await {
                    Ok(dropped) if dropped >= u64::from(SWEEP_MAX) => {}
                    Ok(_) => return,
                    Err(error) => return telemetry::request_store_failed("sweeping", &error),
                }
            }
        });
    }
}
