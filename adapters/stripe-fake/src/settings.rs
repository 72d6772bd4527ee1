//! The settings of a fake.

use crate::limit::RateLimit;

/// The version of the API that the fake has.
pub const API_VERSION: &str = "2026-10-28.endive";

/// The settings of a fake.
#[derive(Clone)]
pub struct Settings {
    /// The port on the loopback interface; 0 selects a free port.
    pub port: u16,
    /// The secret key that the fake accepts. Its prefix decides the mode: `sk_live_` and `rk_live_` are live.
    pub secret_key: String,
    /// If `true`, all objects are of the other mode than that of the key. Default: `false`.
    pub is_other_mode: bool,
    /// The secret of the signatures of [`crate::FakeStripe::sign`], and of registered webhook endpoints.
    pub webhook_secret: String,
    /// The version of events. Default: [`API_VERSION`].
    pub event_version: String,
    /// The time at the start, in Unix seconds. Default: 2026-11-01.
    pub now: i64,
    /// If `true`, the clock runs. Otherwise it advances only on request. Default: `false`.
    pub runs: bool,
    /// The rate limit of requests; `None` if requests are not limited. Default: `None`.
    pub rate_limit: Option<RateLimit>,
    /// If `true`, complete requests and responses are recorded, including secrets.
    pub record_exchanges: bool,
}

impl Settings {
    /// Returns whether the account is in live mode.
    pub(crate) fn is_live(&self) -> bool {
        let prefixes = ["sk_live_", "rk_live_"];
        let is_live_key = prefixes
            .iter()
            .any(|prefix| self.secret_key.starts_with(prefix));
        is_live_key != self.is_other_mode
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            port: 0,
            secret_key: "sk_test_fake".to_owned(),
            is_other_mode: false,
            webhook_secret: "whsec_fake".to_owned(),
            event_version: API_VERSION.to_owned(),
            now: 1_793_491_200,
            runs: false,
            rate_limit: None,
            record_exchanges: false,
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Settings");
        shown
            .field("port", &self.port)
            .field("is_live", &self.is_live())
            .finish_non_exhaustive()
    }
}
