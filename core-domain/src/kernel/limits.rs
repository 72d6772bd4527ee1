//! Limits on what a caller can create, and on the mails that a caller can cause.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration_text;

/// The largest numbers of things that callers can create. A request above a limit is refused with 409 `LIMIT_REACHED`,
/// whose `details.limit` is the number.
///
/// Work of the suite itself has no limits: see [`Limits::unlimited`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Organizations that one person owns. Default: 20.
    pub organizations_per_owner: u32,
    /// Platforms of one organization that are not deleted. Default: 20.
    pub platforms_per_organization: u32,
    /// Members of one organization. Default: 1,000.
    pub members_per_organization: u32,
    /// Pending invitations of one organization. Default: 100.
    pub invitations_per_organization: u32,
    /// API keys of one person, or of one organization. Default: 100.
    pub api_keys_per_owner: u32,
    /// Sessions of one person. A sign-in above the limit ends the oldest session. Default: 100.
    pub sessions_per_user: u32,
    /// Webhooks of one platform, or of the installation. Default: 20.
    pub webhooks_per_owner: u32,
    /// Feature activations of one entity. Default: 200.
    pub features_per_entity: u32,
    /// Jobs of one platform that have not ended. Default: 1,000.
    pub jobs_per_platform: u32,
    /// Mails that anybody can cause.
    pub mail: MailLimits,
}

/// The largest numbers of mails that people and programs can cause. Above a limit the answer stays the same and no mail is
/// sent, unless the sender is a member who invites: they get 409 `LIMIT_REACHED`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MailLimits {
    /// Mails of one kind (sign-in link, new password, confirmation) to one address in an hour, over all clients. Default: 5.
    pub links_per_hour: u32,
    /// Invitations to one address in an hour, over all organizations. Default: 3.
    pub invitations_per_hour: u32,
    /// Invitations to one address in a day, over all organizations. Default: 10.
    pub invitations_per_day: u32,
    /// Invitations that one organization sends in a day. Default: 100.
    pub invitations_per_organization_and_day: u32,
    /// The shortest time between two mails of the same invitation. Default: 5 minutes.
    #[serde(with = "duration_text")]
    pub resend_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            organizations_per_owner: 20,
            platforms_per_organization: 20,
            members_per_organization: 1_000,
            invitations_per_organization: 100,
            api_keys_per_owner: 100,
            sessions_per_user: 100,
            webhooks_per_owner: 20,
            features_per_entity: 200,
            jobs_per_platform: 1_000,
            mail: MailLimits::default(),
        }
    }
}

impl Default for MailLimits {
    fn default() -> Self {
        Self {
            links_per_hour: 5,
            invitations_per_hour: 3,
            invitations_per_day: 10,
            invitations_per_organization_and_day: 100,
            resend_pause: Duration::from_secs(5 * 60),
        }
    }
}

impl Limits {
    /// No limits: for jobs, imports and other work that no caller asks for directly.
    #[must_use]
    pub const fn unlimited() -> Self {
        Self {
            organizations_per_owner: u32::MAX,
            platforms_per_organization: u32::MAX,
            members_per_organization: u32::MAX,
            invitations_per_organization: u32::MAX,
            api_keys_per_owner: u32::MAX,
            sessions_per_user: u32::MAX,
            webhooks_per_owner: u32::MAX,
            features_per_entity: u32::MAX,
            jobs_per_platform: u32::MAX,
            mail: MailLimits {
                links_per_hour: u32::MAX,
                invitations_per_hour: u32::MAX,
                invitations_per_day: u32::MAX,
                invitations_per_organization_and_day: u32::MAX,
                resend_pause: Duration::ZERO,
            },
        }
    }
}
