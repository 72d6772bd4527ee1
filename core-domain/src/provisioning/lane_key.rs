//! The names of lanes.

use crate::kernel::{OnboardingId, PlatformId, TextValue, arbitrary};

/// Names a lane: `platform:{id}`, `onboarding:{id}` before there is a platform, or `own:{name}` for the jobs of a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct LaneKey(String);

impl LaneKey {
    /// The lane of a platform.
    #[must_use]
    pub fn platform(id: &PlatformId) -> Self {
        Self(format!("platform:{id}"))
    }

    /// The lane of what is done with a platform's hostnames even while the platform is suspended.
    #[must_use]
    pub fn hostnames(id: &PlatformId) -> Self {
        Self(format!("hostnames:{id}"))
    }

    /// The lane of an onboarding.
    #[must_use]
    pub fn onboarding(id: &OnboardingId) -> Self {
        Self(format!("onboarding:{id}"))
    }

    /// A lane of a host's own jobs that are about no platform. Those of one lane run one after the other.
    #[must_use]
    pub fn own(name: &str) -> Self {
        Self(format!("own:{name}"))
    }

    /// The platform whose lane it is; `None` for another lane.
    #[must_use]
    pub fn platform_id(&self) -> Option<PlatformId> {
        self.0.strip_prefix("platform:").and_then(PlatformId::parse)
    }

    /// The text of the key.
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

arbitrary!(LaneKey as "(platform|hostnames|onboarding):[a-z0-9-]{1,36}");
