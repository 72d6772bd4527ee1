//! Rate limit policies: the maximum number of requests per window.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::kernel::{duration_text, text_enum};

/// The refusal of an invalid policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a rate limit needs a lower-case name, a quota above zero and a window of whole seconds of at most one day"
)]
pub struct PolicyError;

/// The maximum number of requests in a window of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatePolicy {
    name: String,
    quota: u32,
    window: Duration,
}

impl RatePolicy {
    /// Creates a policy. The name appears in the `RateLimit` headers. Policies with different names have separate
    /// counters.
    ///
    /// # Errors
    /// [`PolicyError`] unless the name matches `[a-z-]+`, the quota is above zero, and the window has 1 to 86,400 whole
    /// seconds.
    pub fn new(name: impl Into<String>, quota: u32, window: Duration) -> Result<Self, PolicyError> {
        let name = name.into();
        let named = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
        let whole = window.subsec_nanos() == 0 && (1..=86_400).contains(&window.as_secs());
        if named && whole && quota > 0 {
            Ok(Self {
                name,
                quota,
                window,
            })
        } else {
            Err(PolicyError)
        }
    }

    /// Returns a policy of one request in the same window, with another name.
    #[must_use]
    pub fn once_per_window(&self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            quota: 1,
            window: self.window,
        }
    }

    /// Returns the name, which appears in the `RateLimit` headers.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the maximum number of requests per window.
    #[must_use]
    pub fn quota(&self) -> u32 {
        self.quota
    }

    /// Returns the length of a window.
    #[must_use]
    pub fn window(&self) -> Duration {
        self.window
    }

    /// Returns the value of the `RateLimit-Policy` header, such as `"default";q=100;w=60`.
    #[must_use]
    pub fn to_header(&self) -> String {
        let Self {
            name,
            quota,
            window,
        } = self;
        format!("\"{name}\";q={quota};w={}", window.as_secs())
    }
}

text_enum! {
    /// The rate class of an endpoint.
    pub enum RateClass {
        /// The class of all other endpoints.
        Default = "default",
        /// The class of endpoints that receive secrets or send mail.
        Strict = "strict",
    }
}

text_enum! {
    /// The kinds of limits. The text form is the name of the policy in the `RateLimit` headers.
    pub enum RateKind {
        /// The requests of a client to one path of class [`RateClass::Default`].
        Default = "default",
        /// The requests of a client to one endpoint of class [`RateClass::Strict`].
        Strict = "strict",
        /// All requests of a client.
        Client = "client",
        /// The different credentials of a client that were rejected.
        FailedAuthentications = "authentication",
        /// The failed sign-ins of a client with one e-mail address.
        FailedSignIns = "failed-sign-ins",
        /// All failed sign-ins of a client, with any e-mail address.
        FailedSignInsOfClient = "failed-sign-ins-of-client",
        /// The different e-mail addresses with which a client failed to sign in.
        FailedAccountsOfClient = "failed-accounts-of-client",
        /// The invalid device codes that a session, or a client, entered.
        WrongUserCodes = "wrong-user-codes",
    }
}

impl RateKind {
    /// Returns the default policy. Many people may share an address. The limit per address and e-mail address is
    /// therefore the one that must be too low for guessing a password.
    fn default_policy(self) -> RatePolicy {
        let (quota, seconds) = match self {
            Self::Default => (100, 60),
            Self::Strict | Self::FailedAuthentications => (10, 60),
            Self::Client => (1_000, 60),
            Self::FailedSignIns => (30, 60),
            Self::FailedSignInsOfClient => (100, 60 * 60),
            Self::FailedAccountsOfClient => (30, 60 * 60),
            Self::WrongUserCodes => (5, 10 * 60),
        };
        RatePolicy {
            name: self.as_str().to_owned(),
            quota,
            window: Duration::from_secs(seconds),
        }
    }
}

impl From<RateClass> for RateKind {
    fn from(class: RateClass) -> Self {
        match class {
            RateClass::Default => Self::Default,
            RateClass::Strict => Self::Strict,
        }
    }
}

/// The policies of all kinds of limits. Per client, the defaults are:
///
/// - 100 requests in 60 seconds to a path, 10 to a strict endpoint, and 1,000 in total;
/// - 10 rejected credentials in 60 seconds;
/// - 30 failed sign-ins in 60 seconds with one e-mail address, and 100 in an hour with all addresses;
/// - 30 different e-mail addresses with failed sign-ins in an hour;
/// - 5 invalid device codes in 10 minutes.
///
/// A configuration file contains the plan as a table by [`RateKind`]: `strict = { requests = 20, window = "1m" }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    try_from = "BTreeMap<RateKind, Quota>",
    into = "BTreeMap<RateKind, Quota>"
)]
pub struct RatePlan {
    /// The policies, indexed by kind.
    policies: [RatePolicy; RateKind::ALL.len()],
}

impl Default for RatePlan {
    fn default() -> Self {
        let policies = std::array::from_fn(|kind| RateKind::ALL[kind].default_policy());
        Self { policies }
    }
}

impl RatePlan {
    /// Returns the policy of a kind.
    #[must_use]
    pub fn policy(&self, kind: RateKind) -> &RatePolicy {
        &self.policies[kind as usize]
    }

    /// Sets the number of requests and the length of the window for a kind.
    ///
    /// # Errors
    /// [`PolicyError`] if the policy is invalid, see [`RatePolicy::new`]. The plan is then unchanged.
    pub fn set(&mut self, kind: RateKind, quota: u32, window: Duration) -> Result<(), PolicyError> {
        self.policies[kind as usize] = RatePolicy::new(kind.as_str(), quota, window)?;
        Ok(())
    }
}

/// A policy in the form of the configuration file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Quota {
    requests: u32,
    #[serde(with = "duration_text")]
    window: Duration,
}

impl TryFrom<BTreeMap<RateKind, Quota>> for RatePlan {
    type Error = PolicyError;

    fn try_from(quotas: BTreeMap<RateKind, Quota>) -> Result<Self, PolicyError> {
        let mut plan = Self::default();
        for (kind, quota) in quotas {
            plan.set(kind, quota.requests, quota.window)?;
        }
        Ok(plan)
    }
}

impl From<RatePlan> for BTreeMap<RateKind, Quota> {
    fn from(plan: RatePlan) -> Self {
        let quota = |kind: &RateKind| {
            let policy = plan.policy(*kind);
            let (requests, window) = (policy.quota, policy.window);
            (*kind, Quota { requests, window })
        };
        RateKind::ALL.iter().map(quota).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn quotas_of_zero_fractional_windows_and_bad_names_are_refused() {
        assert!(RatePolicy::new("a", 0, MINUTE).is_err());
        assert!(RatePolicy::new("", 1, MINUTE).is_err());
        assert!(RatePolicy::new("a\"", 1, MINUTE).is_err());
        assert!(RatePolicy::new("a", 1, Duration::from_millis(1_500)).is_err());
        assert!(RatePolicy::new("a", 1, Duration::ZERO).is_err());
        assert!(RatePolicy::new("a", 1, Duration::from_secs(86_401)).is_err());
    }

    #[test]
    fn the_default_plan_has_the_documented_limits_and_names() {
        let plan = RatePlan::default();
        let headers: Vec<String> = RateKind::ALL
            .iter()
            .map(|kind| plan.policy(*kind).to_header())
            .collect();
        assert_eq!(
            headers,
            [
                "\"default\";q=100;w=60",
                "\"strict\";q=10;w=60",
                "\"client\";q=1000;w=60",
                "\"authentication\";q=10;w=60",
                "\"failed-sign-ins\";q=30;w=60",
                "\"failed-sign-ins-of-client\";q=100;w=3600",
                "\"failed-accounts-of-client\";q=30;w=3600",
                "\"wrong-user-codes\";q=5;w=600",
            ]
        );
    }

    #[test]
    fn setting_a_kind_changes_only_that_kind_and_invalid_policies_change_nothing() {
        let mut plan = RatePlan::default();
        plan.set(RateKind::Client, 5, Duration::from_secs(10))
            .unwrap();
        assert_eq!(
            plan.policy(RateKind::Client).to_header(),
            "\"client\";q=5;w=10"
        );
        assert!(plan.set(RateKind::Client, 0, MINUTE).is_err());
        assert_eq!(plan.policy(RateKind::Client).quota(), 5);
        assert_eq!(plan.policy(RateKind::Strict).quota(), 10);
    }

    #[test]
    fn a_plan_is_serialized_as_a_table_and_parsed_from_a_partial_table() {
        let written = serde_json::to_value(RatePlan::default()).unwrap();
        assert_eq!(
            written["strict"],
            serde_json::json!({ "requests": 10, "window": "1m" })
        );
        let read = |text: &str| serde_json::from_str::<RatePlan>(text);
        assert_eq!(read(&written.to_string()).unwrap(), RatePlan::default());
        let part = read(r#"{ "client": { "requests": 7, "window": "10s" } }"#).unwrap();
        assert_eq!(
            part.policy(RateKind::Client).to_header(),
            "\"client\";q=7;w=10"
        );
        assert_eq!(part.policy(RateKind::Default).quota(), 100);
        for wrong in [
            r#"{ "other": { "requests": 7, "window": "10s" } }"#,
            r#"{ "client": { "requests": 0, "window": "10s" } }"#,
            r#"{ "client": { "requests": 7, "window": "10" } }"#,
            r#"{ "client": { "requests": 7 } }"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
