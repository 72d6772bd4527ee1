//! The settings that all services of a process share.

use std::sync::Arc;
use std::time::Duration;

use core_domain::gateway::{Origins, RatePlan, TrustedProxies};
use core_domain::kernel::{Limits, duration_text};
use core_domain::shared::WebhookTargets;
use serde::{Deserialize, Serialize};

/// The default maximum size of a request body that is not an upload: 1 MiB.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The settings that all services of a process share.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceOptions {
    /// The rate limits of clients that reach a service without a gateway. See [`RatePlan`] for the defaults.
    #[serde(skip)]
    pub rates: RatePlan,
    /// Time limit of a call to the rate limiter, after which requests are counted in memory. Default: 100 milliseconds.
    #[serde(skip)]
    pub limiter_timeout: Duration,
    /// Maximum size of a request body that is not an upload, in bytes. Default: [`MAX_BODY_BYTES`].
    pub max_body_bytes: usize,
    /// Time limits of request bodies that are not uploads. Default: 10 seconds per pause and 30 seconds in total.
    pub body_times: BodyTimes,
    /// Maximum number of event streams that one caller can have open at this process. Further ones are refused with 429
    /// `RATE_LIMITED`. A person and their API keys share one limit, and so do all API keys of an organization. Default:
    /// 16.
    pub streams_per_caller: usize,
    /// Proxies whose `X-Forwarded-For`, `X-Forwarded-Host` and `X-Forwarded-Prefix` are trusted. Default: none.
    #[serde(skip)]
    pub trusted_proxies: TrustedProxies,
    /// Origins whose pages may call while no service key is configured. Default: none.
    #[serde(skip)]
    pub allowed_origins: Origins,
    /// The receivers for which webhooks can be created. Default: `https` URLs on the public internet.
    #[serde(skip)]
    pub webhooks: WebhookTargets,
    /// Limits on the number of records that callers create. See [`Limits`] for the defaults.
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

/// The time limits of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyTimes {
    /// Maximum pause between two frames.
    #[serde(with = "duration_text")]
    pub idle: Duration,
    /// Maximum time for the whole body; [`Duration::MAX`] for no limit.
    #[serde(with = "duration_text")]
    pub total: Duration,
}

impl Default for BodyTimes {
    /// Returns the limits for a request that is not an upload: 10 seconds per pause and 30 seconds in total.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(10),
            total: Duration::from_secs(30),
        }
    }
}
