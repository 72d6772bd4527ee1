//! Onboardings: a person asks for a platform, and a job makes it.

use super::Tier;
use crate::kernel::{
    Email, JobId, Name, OnboardingId, PlatformId, SessionId, Slug, Timestamp, UserId, text_enum,
};
use crate::port::Record;

text_enum! {
    /// The tier somebody asks for.
    pub enum OnboardingTier {
        /// Without paying; the platform is of the tier `starter`.
        Free = "free",
        /// To begin with.
        Starter = "starter",
        /// More.
        Growth = "growth",
        /// Most.
        Scale = "scale",
    }
}

impl OnboardingTier {
    /// The tier of the platform.
    #[must_use]
    pub const fn platform_tier(self) -> Tier {
        match self {
            Self::Free | Self::Starter => Tier::Starter,
            Self::Growth => Tier::Growth,
            Self::Scale => Tier::Scale,
        }
    }
}

text_enum! {
    /// Where an onboarding stands. Finer: the status of its job.
    pub enum OnboardingStatus {
        /// Its job has not ended; the slug is taken.
        Open = "open",
        /// The platform is there.
        Completed = "completed",
        /// Its job has stopped; unless the platform was made before that, the slug is free.
        Failed = "failed",
    }
}

/// A run of the onboarding flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Onboarding {
    /// The onboarding's id.
    pub id: OnboardingId,
    /// What the platform shall be called.
    pub platform_name: Name,
    /// Its slug. No two open onboardings share one.
    pub slug: Slug,
    /// Its tier.
    pub tier: OnboardingTier,
    /// The stack template it shall begin with.
    pub stack_template_id: Option<String>,
    /// Where bills shall go.
    pub billing_email: Option<Email>,
    /// Who shall own it.
    pub user_id: Option<UserId>,
    /// The session that asked; acts for the new organization, unless it acts for another one.
    pub session_id: Option<SessionId>,
    /// The id the platform will have.
    pub platform_id: PlatformId,
    /// The job that makes it.
    pub job_id: JobId,
    /// Where it stands.
    pub status: OnboardingStatus,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl Record for Onboarding {
    type Query = OnboardingQuery;
    const KIND: &'static str = "onboarding";

    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// Questions about onboardings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnboardingQuery {
    /// The open one that has taken a slug.
    OpenWithSlug(Slug),
}
