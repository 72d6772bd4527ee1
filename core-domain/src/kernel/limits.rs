//! Limits on what a caller can create, and on the mails that a caller can cause.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration_text;

/// The largest numbers of things that callers can create. A request above a limit is refused with 409 `LIMIT_REACHED`,
/// whose `details.limit` is the number.
///
/// Operators and services have no limits on organizations, platforms, and most of what those contain. The limits on
/// sessions, passkeys, API keys, grants, role mappings, webhooks, features and the bytes of sites hold for everybody.
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
    /// Roles of one organization that are mapped to permissions. Default: 100.
    pub role_mappings_per_organization: u32,
    /// Grants and denials of one member. Default: 100.
    pub grants_per_member: u32,
    /// API keys of one person, or of one organization. Default: 100.
    pub api_keys_per_owner: u32,
    /// Sessions of one person. A sign-in above the limit ends the oldest session. Default: 100.
    pub sessions_per_user: u32,
    /// Passkeys of one person. Default: 20.
    pub passkeys_per_user: u32,
    /// Webhooks of one platform, or of the installation. Default: 20.
    pub webhooks_per_owner: u32,
    /// Entities of one platform that are not deleted. Default: 10,000.
    pub entities_per_platform: u32,
    /// Entities, resources, workspace stacks and features that one cascading deletion of an entity removes. Default: 5,000. Holds
    /// for operators too.
    pub records_per_cascade: u32,
    /// Resources of one platform that are not deleted. Default: 10,000.
    pub resources_per_platform: u32,
    /// Secrets of one resource. Default: 200.
    pub secrets_per_resource: u32,
    /// DNS records of one platform that are not deleted. Default: 1,000.
    pub dns_records_per_platform: u32,
    /// Custom domains of one platform that are not deleted. Default: 1,000.
    pub domains_per_platform: u32,
    /// Workspace stacks of one entity. Default: 200.
    pub workspace_stacks_per_entity: u32,
    /// Feature activations of one entity in one environment. Default: 200.
    pub features_per_entity: u32,
    /// Deployments of one platform that have not ended. Default: 100.
    pub open_deployments_per_platform: u32,
    /// Bytes that the sites of one platform take: the live site, its previews and pending uploads. Equal files of a site count
    /// once, and the local provider counts whole blocks of 4 KiB. Uploads of failed deployments count for a week, as long as
    /// they are kept. Replaced deployments make room by themselves. Default: 5 GiB.
    pub site_bytes_per_platform: u64,
    /// Queued jobs of one platform. Undo jobs, the removal of the platform, and jobs that other jobs queue count, but are never
    /// refused. Default: 1,000.
    pub jobs_per_platform: u32,
    /// The operator's own zones, such as `example.net`. Of the hostnames in them, a tenant enters only its own: `SLUG.ZONE`,
    /// where `SLUG` is the platform's slug, and names below it. Default: none.
    pub operator_zones: Vec<String>,
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
            role_mappings_per_organization: 100,
            grants_per_member: 100,
            api_keys_per_owner: 100,
            sessions_per_user: 100,
            passkeys_per_user: 20,
            webhooks_per_owner: 20,
            entities_per_platform: 10_000,
            records_per_cascade: 5_000,
            resources_per_platform: 10_000,
            secrets_per_resource: 200,
            dns_records_per_platform: 1_000,
            domains_per_platform: 1_000,
            workspace_stacks_per_entity: 200,
            features_per_entity: 200,
            open_deployments_per_platform: 100,
            site_bytes_per_platform: 5 * 1024 * 1024 * 1024,
            jobs_per_platform: 1_000,
            operator_zones: Vec::new(),
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
        Self::of(u32::MAX)
    }

    /// Returns limits that are all this number. Mails and bytes have no limits.
    #[must_use]
    pub const fn of(number: u32) -> Self {
        Self {
            organizations_per_owner: number,
            platforms_per_organization: number,
            members_per_organization: number,
            invitations_per_organization: number,
            role_mappings_per_organization: number,
            grants_per_member: number,
            api_keys_per_owner: number,
            sessions_per_user: number,
            passkeys_per_user: number,
            webhooks_per_owner: number,
            entities_per_platform: number,
            records_per_cascade: number,
            resources_per_platform: number,
            secrets_per_resource: number,
            dns_records_per_platform: number,
            domains_per_platform: number,
            workspace_stacks_per_entity: number,
            features_per_entity: number,
            open_deployments_per_platform: number,
            site_bytes_per_platform: u64::MAX,
            jobs_per_platform: number,
            operator_zones: Vec::new(),
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
