//! Onboardings: a person requests a platform, and a job creates it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tier;
use crate::kernel::{
    Email, JobId, Line, Name, OnboardingId, OrganizationName, PlatformId, SessionId, Slug,
    TemplateId, Timestamp, UserId, record, state_machine, text_enum,
};

text_enum! {
    /// The tier that a person requests.
    pub enum OnboardingTier {
        /// A free plan. The platform gets the tier `starter`.
        Free = "free",
        /// The entry tier.
        Starter = "starter",
        /// The middle tier.
        Growth = "growth",
        /// The highest tier.
        Scale = "scale",
    }
}

impl OnboardingTier {
    /// Returns the tier with which the platform is created.
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
    /// The status of an onboarding. The status of its job is more detailed.
    pub enum OnboardingStatus {
        /// The job has not ended. The slug is reserved.
        Open = "open",
        /// The platform exists.
        Completed = "completed",
        /// The job stopped without success. The slug is free, unless the platform was created before.
        Failed = "failed",
    }
}

state_machine! {
    /// Events of an onboarding, which is created `open`.
    pub enum OnboardingEvent moves OnboardingStatus {
        /// The platform exists.
        Complete = "complete": [Open, Failed] => Completed, "onboarding.completed";
        /// The job stopped without success.
        Fail = "fail": [Open] => Failed, "onboarding.failed";
        /// An operator resumes the job.
        Resume = "resume": [Failed] => Open, "onboarding.resumed";
    }
}

impl OnboardingTier {
    /// Returns the default tier: `starter`.
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
    /// The id of the onboarding, assigned by this system.
    pub id: OnboardingId,
    /// The caller that requested the onboarding, as named in the audit log. `requested_id` is valid for this caller
    /// only.
    pub requested_by: String,
    /// The id that the caller chose. `None` if the caller chose none.
    pub requested_id: Option<OnboardingId>,
    /// The name of the new platform.
    pub platform_name: Name,
    /// The slug of the new platform. It is unique among open onboardings.
    pub slug: Slug,
    /// The tier that was requested.
    pub tier: OnboardingTier,
    /// The tier with which the platform is created.
    pub platform_tier: Tier,
    /// The stack template that the platform starts with, if any.
    pub stack_template_id: Option<TemplateId>,
    /// The email address for invoices, if any.
    pub billing_email: Option<Email>,
    /// The user who will own the platform.
    pub user_id: Option<UserId>,
    /// The session that requested the onboarding. The new organization becomes its active organization, unless it has
    /// another one.
    #[serde(skip)]
    pub session_id: Option<SessionId>,
    /// The id that the platform will have.
    pub platform_id: PlatformId,
    /// The job that creates the platform.
    pub job_id: JobId,
    /// The status of the onboarding.
    pub status: OnboardingStatus,
    /// When the onboarding was requested.
    pub created_at: Timestamp,
    /// When the record was last changed.
    pub updated_at: Timestamp,
}

record! {
    Onboarding as "onboarding" by id, asked OnboardingQuery;
    audited, touched updated_at;
}

impl Onboarding {
    /// Returns the id by which the caller knows the onboarding: the requested id if there is one, otherwise the
    /// assigned id.
    #[must_use]
    pub fn public_id(&self) -> &OnboardingId {
        self.requested_id.as_ref().unwrap_or(&self.id)
    }
}

/// Queries for onboardings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnboardingQuery {
    /// The open onboarding that reserves a slug.
    OpenWithSlug(Slug),
    /// The open onboardings for an owner.
    OpenOf(UserId),
    /// The onboarding for which a caller chose an id.
    RequestedAs {
        /// The caller, as named in the audit log.
        requested_by: String,
        /// The id that the caller chose.
        requested_id: OnboardingId,
    },
    /// The onboardings for which any caller chose an id, newest first.
    WithRequestedId(OnboardingId),
}

/// Request body that creates an organization with its platform.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartOnboarding {
    /// The name of the organization and its platform.
    pub platform_name: OrganizationName,
    /// The slug of the organization and its platform.
    pub slug: Slug,
    /// The requested tier. Default: `starter`.
    #[serde(default = "OnboardingTier::starter")]
    pub tier: OnboardingTier,
    /// The name or id of the stack template that the platform starts with. Default: none.
    pub stack_template_id: Option<Line<1, 128>>,
    /// The email address for invoices. Default: none.
    pub billing_email: Option<Email>,
}
