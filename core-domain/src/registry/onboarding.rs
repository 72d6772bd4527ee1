//! Onboardings: a person asks for a platform, and a job makes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tier;
use crate::kernel::{
    Email, JobId, Line, Name, OnboardingId, OrganizationName, PlatformId, SessionId, Slug,
    TemplateId, Timestamp, UserId, record, state_machine, text_enum,
};

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
        /// Its job has not ended; the slug is reserved.
        Open = "open",
        /// The platform is there.
        Completed = "completed",
        /// Its job has stopped; unless the platform was created before that, the slug is free.
        Failed = "failed",
    }
}

state_machine! {
    /// What happens to an onboarding. It begins `open`.
    pub enum OnboardingEvent moves OnboardingStatus {
        /// The platform is there.
        Complete = "complete": [Open, Failed] => Completed, "onboarding.completed";
        /// Its job has stopped.
        Fail = "fail": [Open] => Failed, "onboarding.failed";
        /// An operator lets its job go on.
        Resume = "resume": [Failed] => Open, "onboarding.resumed";
    }
}

impl OnboardingTier {
    /// What is asked for when nothing is said.
    #[must_use]
    pub const fn starter() -> Self {
        Self::Starter
    }
}

/// A run of the onboarding flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Onboarding {
    /// The onboarding's id, ours.
    pub id: OnboardingId,
    /// Who asked, as the audit names callers; the id they gave counts for them alone.
    pub requested_by: String,
    /// The id that who asked gave it.
    pub requested_id: Option<OnboardingId>,
    /// What the platform shall be called.
    pub platform_name: Name,
    /// Its slug. No two open onboardings share one.
    pub slug: Slug,
    /// The tier that was asked for.
    pub tier: OnboardingTier,
    /// The tier the platform begins with.
    pub platform_tier: Tier,
    /// The stack template it shall begin with.
    pub stack_template_id: Option<TemplateId>,
    /// Where bills shall go.
    pub billing_email: Option<Email>,
    /// Who shall own it.
    pub user_id: Option<UserId>,
    /// The session that asked; acts for the new organization, unless it acts for another one.
    #[serde(skip)]
    pub session_id: Option<SessionId>,
    /// The id the platform will have.
    pub platform_id: PlatformId,
    /// The job that creates it.
    pub job_id: JobId,
    /// Where it stands.
    pub status: OnboardingStatus,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

record! {
    Onboarding as "onboarding" by id, asked OnboardingQuery;
    audited, touched updated_at;
}

impl Onboarding {
    /// The id its caller knows it by.
    #[must_use]
    pub fn shown_id(&self) -> &OnboardingId {
        self.requested_id.as_ref().unwrap_or(&self.id)
    }
}

/// Questions about onboardings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnboardingQuery {
    /// The open one that has reserved a slug.
    OpenWithSlug(Slug),
    /// The open ones for an owner.
    OpenOf(UserId),
    /// The one that this caller gave this id.
    RequestedAs {
        /// The caller, as the audit names callers.
        requested_by: String,
        /// The id.
        requested_id: OnboardingId,
    },
    /// Those that any caller gave this id, newest first.
    WithRequestedId(OnboardingId),
}

/// Asks for an organization with its platform.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartOnboarding {
    /// The name of the organization and its platform.
    pub platform_name: OrganizationName,
    /// The slug of both.
    pub slug: Slug,
    /// The tier that is wanted.
    #[serde(default = "OnboardingTier::starter")]
    pub tier: OnboardingTier,
    /// The stack template the platform shall begin with, by name or id.
    pub stack_template_id: Option<Line<1, 128>>,
    /// Where bills shall go.
    pub billing_email: Option<Email>,
}
