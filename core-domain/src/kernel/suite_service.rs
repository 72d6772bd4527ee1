//! The services of the suite.

use super::{TextValue, text_enum};

text_enum! {
    /// A service of the suite.
    pub enum SuiteService {
        /// The public gateway.
        Gateway = "gateway",
        /// The identity and access service.
        Iam = "iam",
        /// The registry of platforms and their records.
        Registry = "registry",
        /// The provisioning service with its jobs.
        Provisioning = "provisioning",
        /// The backend of the command-line client.
        Cli = "cli",
        /// The billing service: plans, subscriptions and usage.
        Billing = "billing",
        /// The registry of stack templates and their versions.
        Stacks = "stacks",
    }
}

impl SuiteService {
    /// Returns whether this service may call the target. Every service may call every other, except the gateway, which
    /// no service calls.
    #[must_use]
    pub fn may_call(self, target: Self) -> bool {
        self != target && target != Self::Gateway
    }
}

impl std::str::FromStr for SuiteService {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_text(text).ok_or_else(|| format!("unknown service {text}"))
    }
}
