//! Limits on what callers can create, and on the mails that callers can cause.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration_text;

/// The limits on what callers can create. A request above a limit is refused with 409 `LIMIT_REACHED`; `details.limit`
/// is the limit.
///
/// The limits on organizations, platforms and most of their contents do not apply to operators and services. The limits
/// on sessions, passkeys, API keys, grants, role mappings, webhooks, features and bytes of sites apply to everyone.
///
/// Background work of the suite has no limits; see [`Limits::unlimited`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of organizations that one person owns. Default: 20.
    pub organizations_per_owner: u32,
    /// Maximum number of platforms of one organization, without deleted ones. Default: 20.
    pub platforms_per_organization: u32,
    /// Maximum number of members of one organization. Default: 1,000.
    pub members_per_organization: u32,
    /// Maximum number of pending invitations of one organization. Default: 100.
    pub invitations_per_organization: u32,
    /// Maximum number of roles that one organization maps to permissions. Default: 100.
    pub role_mappings_per_organization: u32,
    /// Maximum number of grants and denials of one member. Default: 100.
    pub grants_per_member: u32,
    /// Maximum number of API keys of one person, and of one organization. Default: 100.
    pub api_keys_per_owner: u32,
    /// Maximum number of sessions of one person. A sign-in above the limit ends the oldest session. Default: 100.
    pub sessions_per_user: u32,
    /// Maximum number of passkeys of one person. Default: 20.
    pub passkeys_per_user: u32,
    /// Maximum number of webhooks of one platform, and of the installation. Default: 20.
    pub webhooks_per_owner: u32,
    /// Maximum number of entities of one platform, without deleted ones. Default: 10,000.
    pub entities_per_platform: u32,
    /// Maximum number of entities, resources, workspace stacks and features that one cascading deletion of an entity
    /// removes. It also applies to operators. Default: 5,000.
    pub records_per_cascade: u32,
    /// Maximum number of resources of one platform, without deleted ones. Default: 10,000.
    pub resources_per_platform: u32,
    /// Maximum number of secrets of one resource. Default: 200.
    pub secrets_per_resource: u32,
    /// Maximum number of DNS records of one platform, without deleted ones. Default: 1,000.
    pub dns_records_per_platform: u32,
    /// Maximum number of custom domains of one platform, without deleted ones. Default: 1,000.
    pub domains_per_platform: u32,
    /// Maximum number of workspace stacks of one entity. Default: 200.
    pub workspace_stacks_per_entity: u32,
    /// Maximum number of feature activations of one entity in one environment. Default: 200.
    pub features_per_entity: u32,
    /// Maximum number of unfinished deployments of one platform. Default: 100.
    pub open_deployments_per_platform: u32,
    /// Maximum number of valid deploy plans of one platform. A plan is valid for 15 minutes, and its list of files takes
    /// up to 8 MiB. Default: 20.
    pub deploy_plans_per_platform: u32,
    /// Maximum number of bytes of the sites of one platform: the live site, its previews and pending uploads. Equal
    /// files of a site count once. The local provider counts whole blocks of 4 KiB. Uploads of failed deployments count
    /// for the week for which they are kept. Replaced deployments free their bytes automatically. Default: 5 GiB.
    pub site_bytes_per_platform: u64,
    /// Maximum number of queued jobs of one platform. Undo jobs, the removal of the platform, and jobs that other jobs
    /// create count, but are never refused. Default: 1,000.
    pub jobs_per_platform: u32,
    /// Whether the numbers of stacks, custom domains and entities that a plan allows are enforced. Default: `false`.
    pub enforce_quotas: bool,
    /// The operator's own DNS zones, such as `example.net`. In these zones, a platform can use only the hostname
    /// `SLUG.ZONE` and names below it, where `SLUG` is its slug. Default: none.
    pub operator_zones: Vec<String>,
    /// The limits on mails.
    pub mail: MailLimits,
}

/// The limits on mails that people and programs can cause. Above a limit the response stays the same, but no mail is
/// sent. Only invitations by members are refused, with 409 `LIMIT_REACHED`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MailLimits {
    /// Maximum number of mails of one kind (sign-in link, new password, confirmation) to one address per hour, for all
    /// clients together. Default: 5.
    pub links_per_hour: u32,
    /// Maximum number of invitations to one address per hour, from all organizations. Default: 3.
    pub invitations_per_hour: u32,
    /// Maximum number of invitations to one address per day, from all organizations. Default: 10.
    pub invitations_per_day: u32,
    /// Maximum number of invitations that one organization sends per day. Default: 100.
    pub invitations_per_organization_and_day: u32,
    /// Minimum time between two mails of the same invitation. Default: 5 minutes.
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
            deploy_plans_per_platform: 20,
            site_bytes_per_platform: 5 * 1024 * 1024 * 1024,
            jobs_per_platform: 1_000,
            enforce_quotas: false,
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
    /// Returns limits that are never reached, for jobs, imports and other work that no caller requests directly.
    #[must_use]
    pub const fn unlimited() -> Self {
        Self::uniform(u32::MAX)
    }

    /// Returns limits in which every number of records is `number`. Bytes and mails are not limited.
    #[must_use]
    pub const fn uniform(number: u32) -> Self {
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
            deploy_plans_per_platform: number,
            site_bytes_per_platform: u64::MAX,
            jobs_per_platform: number,
            enforce_quotas: false,
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
