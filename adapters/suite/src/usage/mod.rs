//! Metered usage of the host program, and that of the gateway and of the sites of the local provider.

mod reporter;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use core_domain::access::authorize_operator;
use core_domain::billing::usage::{IngestUsage, IngestedUsage, NewUsageEvent};
use core_domain::kernel::{Context, Entropy, PlatformId, Result, Timestamp};
use core_domain::port::{Mode, Store, TrafficMeter, transact_in};
use core_domain::use_case::billing::Billing;
use core_domain::use_case::shared::usage;
use core_http::billing::UsageMetrics;
use core_http::gateway::{ExhaustedRequests, UsageMeter};
use core_http::kernel::metrics::Metrics;

pub(crate) use reporter::GatewayReporter;

/// Reports usage of platforms from the host program.
#[derive(Clone, Debug)]
pub struct Usage {
    store: Arc<dyn Store>,
    billing: Arc<Billing>,
    cx: Context,
    metrics: UsageMetrics,
}

impl Usage {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        billing: Arc<Billing>,
        entropy: Arc<dyn Entropy>,
        metrics: &Metrics,
    ) -> Self {
        Self {
            store,
            billing,
            cx: Context::system(entropy),
            metrics: UsageMetrics::new(metrics),
        }
    }

    /// Stores at most 1,000 events and adds them to the sums. Each event counts once, however often it is reported. The
    /// result has the outcome of each event.
    ///
    /// # Errors
    /// - `VALIDATION_ERROR` if the batch is empty or has more than 1,000 events, or an event breaks a rule. No event is
    ///   stored.
    /// - `CONFLICT` if a sum would exceed 63 bits. No event is stored.
    pub async fn report(&self, events: Vec<NewUsageEvent>) -> Result<IngestedUsage> {
        let scope = authorize_operator(&self.cx)?;
        let (store, metering) = (self.store.as_ref(), self.billing.metering());
        let batch = IngestUsage { events };
        let usage = usage::ingest(&self.cx, &scope, store, metering, batch).await?;
        self.metrics.count(&usage);
        Ok(usage)
    }
}

/// The billing that the usage of the gateway is reported to: in this process or in another one.
#[async_trait]
pub(crate) trait UsageSink: Send + Sync + std::fmt::Debug {
    /// Returns the current instant of billing.
    async fn now(&self) -> Result<Timestamp>;

    /// Stores events; see [`Usage::report`].
    async fn report(&self, events: Vec<NewUsageEvent>) -> Result<()>;

    /// Returns the exhausted quota of requests of a platform, if it has one and has used it up.
    async fn find_exhausted(&self, platform: &PlatformId) -> Result<Option<ExhaustedRequests>>;
}

#[async_trait]
impl UsageSink for Usage {
    async fn now(&self) -> Result<Timestamp> {
        let clock = self.billing.clock;
        transact_in(Mode::Read, self.store.as_ref(), |uow, _| {
            Box::pin(async move { clock.now(uow).await })
        })
        .await
    }

    async fn report(&self, events: Vec<NewUsageEvent>) -> Result<()> {
        Self::report(self, events).await.map(drop)
    }

    async fn find_exhausted(&self, platform: &PlatformId) -> Result<Option<ExhaustedRequests>> {
        let metering = self.billing.metering();
        let used = transact_in(Mode::Read, self.store.as_ref(), |uow, _| {
            Box::pin(async move { usage::exhausted_requests(uow, metering, platform).await })
        });
        let used = used.await?;
        Ok(used.map(|price| ExhaustedRequests {
            used: price.quantity,
            limit: price.price.included,
        }))
    }
}

/// The usage of a platform since the last report.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    counts: HashMap<PlatformId, Counts>,
    exhausted: HashMap<PlatformId, ExhaustedRequests>,
}

/// Counts requests and bytes of platforms at the gateway and at their sites, in memory.
#[derive(Debug, Default)]
pub(crate) struct GatewayMeter(Mutex<State>);

impl GatewayMeter {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_counts(&self) -> bool {
        !self.state().counts.is_empty()
    }

    /// Removes and returns the counts of the platforms that satisfy the condition.
    fn take_counts(
        &self,
        mut is_wanted: impl FnMut(&PlatformId) -> bool,
    ) -> BTreeMap<PlatformId, Counts> {
        let mut state = self.state();
        let wanted = state.counts.extract_if(|platform, _| is_wanted(platform));
        wanted.collect()
    }

    fn exhausted_platforms(&self) -> Vec<PlatformId> {
        self.state().exhausted.keys().cloned().collect()
    }

    fn set_exhausted(&self, platform: PlatformId, exhausted: Option<ExhaustedRequests>) {
        let mut state = self.state();
        match exhausted {
            Some(exhausted) => state.exhausted.insert(platform, exhausted),
            None => state.exhausted.remove(&platform),
        };
    }
}

impl TrafficMeter for GatewayMeter {
    fn count(&self, platform: &PlatformId, response_bytes: u64) {
        let mut state = self.state();
        // Copies the id only for the first request after a report.
        if let Some(counts) = state.counts.get_mut(platform) {
            counts.add(response_bytes);
        } else {
            let counts = state.counts.entry(platform.clone()).or_default();
            counts.add(response_bytes);
        }
    }
}

impl UsageMeter for GatewayMeter {
    fn find_exhausted(&self, platform: &PlatformId) -> Option<ExhaustedRequests> {
        self.state().exhausted.get(platform).copied()
    }
}

impl Counts {
    const fn add(&mut self, bytes: u64) {
        self.requests = self.requests.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}
