//! The settings of every service.

use std::sync::Arc;
use std::time::Duration;

use core_domain::gateway::{Origins, RatePlan, TrustedProxies};
use core_domain::kernel::Limits;
use core_domain::shared::WebhookTargets;
use serde::{Deserialize, Serialize};

use super::BodyTimes;

/// The largest body that is no upload, unless something else is set: 1 MiB.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The settings that hold for every service of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceOptions {
    /// The rate limits of clients that reach a service without a gateway. See [`RatePlan`] for the defaults.
    #[serde(skip)]
    pub rates: RatePlan,
    /// How long the rate limiter may take before the in-memory limiter is used instead. 100 milliseconds unless set.
    #[serde(skip)]
    pub limiter_timeout: Duration,
    /// The largest body that is no upload, in bytes. [`MAX_BODY_BYTES`] unless set.
    pub max_body_bytes: usize,
    /// The time limits of request bodies other than uploads: pauses of 10 seconds, 30 seconds in all, unless set.
    pub body_times: BodyTimes,
    /// Maximum number of event streams that one caller has open at this process. The API keys of a person count with the
    /// person, those of an organization with the organization. Above it, 429 `RATE_LIMITED`. Default: 16.
    pub streams_per_caller: usize,
    /// Proxies whose `X-Forwarded-For`, `X-Forwarded-Host` and `X-Forwarded-Prefix` are trusted. None unless set.
    #[serde(skip)]
    pub trusted_proxies: TrustedProxies,
    /// Origins whose pages may call when no service key is configured. None unless set.
    #[serde(skip)]
    pub allowed_origins: Origins,
    /// Which receivers webhooks are created for: those of the public internet with TLS, unless set.
    #[serde(skip)]
    pub webhooks: WebhookTargets,
    /// How much callers may create. See [`Limits`] for the defaults.
    #[serde(skip)]
    pub limits: Arc<Limits>,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            rates: RatePlan::default(),
            limiter_timeout: Duration::from_millis(100),
            max_body_bytes: MAX_BODY_BYTES,
            body_times: BodyTimes::default(),
            streams_per_caller: 16,
            trusted_proxies: TrustedProxies::default(),
            allowed_origins: Origins::default(),
            webhooks: WebhookTargets::default(),
            limits: Arc::default(),
        }
    }
}
