//! The key of a lane.

use crate::kernel::{CustomerId, OnboardingId, PlatformId, TextValue, arbitrary};

/// The key of a lane: `platform:{id}`, `hostnames:{id}`, `onboarding:{id}`, `billing:{id}` or `own:{name}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct LaneKey(String);

impl LaneKey {
    /// Returns the key of a platform's main lane.
    #[must_use]
    pub fn platform(id: &PlatformId) -> Self {
        Self(format!("platform:{id}"))
    }

    /// Returns the key of the lane for jobs on a platform's hostnames. A suspension of the platform does not hold it.
    #[must_use]
    pub fn hostnames(id: &PlatformId) -> Self {
        Self(format!("hostnames:{id}"))
    }

    /// Returns the keys of all lanes of a platform.
    #[must_use]
    pub fn of_platform(id: &PlatformId) -> [Self; 2] {
        [Self::platform(id), Self::hostnames(id)]
    }

    /// Returns the key of an onboarding's lane, used until its platform exists.
    #[must_use]
    pub fn onboarding(id: &OnboardingId) -> Self {
        Self(format!("onboarding:{id}"))
    }

    /// Returns the key of the lane for jobs about the billing of a customer.
    #[must_use]
    pub fn billing(id: &CustomerId) -> Self {
        Self(format!("billing:{id}"))
    }

    /// Returns the key of the lane for an event of the payment provider whose customer is not known yet.
    #[must_use]
    pub fn provider_event(id: &str) -> Self {
        Self(format!("provider-event:{id}"))
    }

    /// Returns the key of a lane for jobs of the host application that belong to no platform.
    #[must_use]
    pub fn host(name: &str) -> Self {
        Self(format!("own:{name}"))
    }

    /// Returns the platform whose main lane this is; `None` for any other lane.
    #[must_use]
    pub fn platform_id(&self) -> Option<PlatformId> {
        self.0.strip_prefix("platform:").and_then(PlatformId::parse)
    }

    /// Returns the platform of a main lane or of a lane for hostnames; `None` for any other lane.
    #[must_use]
    pub fn owner(&self) -> Option<PlatformId> {
        let hostnames = self.0.strip_prefix("hostnames:");
        self.platform_id()
            .or_else(|| hostnames.and_then(PlatformId::parse))
    }

    /// Returns the key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for LaneKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl TextValue for LaneKey {
    fn as_text(&self) -> &str {
        &self.0
    }

    fn from_text(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }
}

arbitrary!(LaneKey as "(platform|hostnames|onboarding|billing):[a-z0-9-]{1,36}");
