//! Records: what a store keeps, and what every record says of itself.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

use super::{JsonText, PlatformId, Timestamp};

/// A thing a store keeps. Declared with the macro `record!`.
///
/// `Query` is a closed enum of the questions that can be asked of these records; each names its filter and order.
pub trait Record: Clone + std::fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The questions that can be asked.
    type Query: Clone + std::fmt::Debug + Send + Sync + 'static;

    /// Whose it is: [`PlatformOwned`] or [`Unowned`]. Decides which scopes reach it.
    type Owner: Owner;

    /// What people call it; the word of `NOT_FOUND`.
    const KIND: &'static str;

    /// Whether every change of such a record adds an entry to the audit of its platform, in the same commit; stores rely on
    /// it to tell whether a platform's records have changed.
    const CHANGES_ARE_AUDITED: bool = false;

    /// The text that tells this record from all others of its kind.
    fn key(&self) -> &str;

    /// The entity tag of the record at a version, without quotes: the version, unless the record says otherwise.
    fn etag(&self, version: i64) -> String {
        version.to_string()
    }
}

/// Whose a record is.
pub trait Owner {
    /// Whether it belongs to a platform, and goes with it.
    const IS_PLATFORM: bool;
}

/// Of a record that belongs to a platform, see [`OfPlatform`].
#[derive(Clone, Copy, Debug)]
pub enum PlatformOwned {}

impl Owner for PlatformOwned {
    const IS_PLATFORM: bool = true;
}

/// Of a record that belongs to no platform, or not to one alone.
#[derive(Clone, Copy, Debug)]
pub enum Unowned {}

impl Owner for Unowned {
    const IS_PLATFORM: bool = false;
}

/// A record that belongs to a platform. It is read and written through a scope on that platform alone, and the store
/// compares the column `platform_id` in every statement.
pub trait OfPlatform: Record<Owner = PlatformOwned> {
    /// The platform; never changes.
    fn platform_id(&self) -> &PlatformId;
}

/// A record whose changes the audit keeps.
pub trait Audited: Record {
    /// What the audit keeps of the record: what the interface shows of it, without what no audit should keep.
    fn audit_snapshot(&self) -> JsonText;

    /// The platform whose audit its changes belong to, if any.
    fn audit_platform(&self) -> Option<&PlatformId>;

    /// Notes when it was last changed, if the record keeps that.
    fn touch(&mut self, now: Timestamp);
}

/// A record as it stands in the store, with the version the store gave it. A clone shares the record.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<R> {
    record: Arc<R>,
    version: i64,
}

impl<R> Stored<R> {
    /// For stores alone: a record at a version.
    pub fn new(record: R, version: i64) -> Self {
        let record = Arc::new(record);
        Self { record, version }
    }

    /// The version: 1 for a new record, one more at every change.
    pub const fn version(&self) -> i64 {
        self.version
    }
}

impl<R: Clone> Stored<R> {
    /// The record alone.
    pub fn into_inner(self) -> R {
        Arc::unwrap_or_clone(self.record)
    }
}

impl<R: Record> Stored<R> {
    /// The entity tag, without quotes.
    #[must_use]
    pub fn etag(&self) -> String {
        self.record.etag(self.version)
    }

    /// A copy of the record, to be changed and put in its place.
    #[must_use]
    pub fn edit(&self) -> R {
        R::clone(&self.record)
    }
}

impl<R> Deref for Stored<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.record
    }
}

/// Declares what a struct is as a record: its name in messages, its key, its queries; the platform it belongs to; and
/// whether the audit keeps its changes.
///
/// ```ignore
/// record! {
///     Entity as "entity" by id, asked EntityQuery;
///     of platform_id;             // belongs to the platform of this field
///     audited, touched updated_at;  // or `audited;`, for one that keeps no instant of its last change
/// }
/// ```
macro_rules! record {
    (
        $record:ident as $kind:literal by $key:ident, asked $query:ty;
        $(of $platform:ident;)?
        $(audited $(in $audit_platform:expr)? $(, touched $touched:ident)? $(, without $($hidden:literal),+)?;)?
    ) => {
        impl $crate::kernel::Record for $record {
            type Query = $query;
            type Owner = $crate::kernel::record!(@owner $($platform)?);
            const KIND: &'static str = $kind;
            $(const CHANGES_ARE_AUDITED: bool = $crate::kernel::record!(@true $($touched)?);)?

            fn key(&self) -> &str {
                AsRef::<str>::as_ref(&self.$key)
            }
        }

        $(
            impl $crate::kernel::OfPlatform for $record {
                fn platform_id(&self) -> &$crate::kernel::PlatformId {
                    &self.$platform
                }
            }
        )?

        $crate::kernel::record!(@audited $record [$($platform)?]
            $(audited [$($audit_platform)?] [$($touched)?] [$($($hidden),+)?])?);
    };
    (@true $($touched:ident)?) => { true };
    (@owner) => { $crate::kernel::Unowned };
    (@owner $platform:ident) => { $crate::kernel::PlatformOwned };
    (@audited $record:ident [$($platform:ident)?]) => {};
    (@audited $record:ident [$($platform:ident)?] audited [$($audit_platform:expr)?] [$($touched:ident)?] [$($hidden:literal),*]) => {
        impl $crate::kernel::Audited for $record {
            fn audit_snapshot(&self) -> $crate::kernel::JsonText {
                const HIDDEN: &[&str] = &[$($hidden),*];
                if HIDDEN.is_empty() {
                    return $crate::kernel::JsonText::of(self);
                }
                $crate::kernel::JsonText::of(&$crate::kernel::snapshot(self, HIDDEN))
            }

            fn audit_platform(&self) -> Option<&$crate::kernel::PlatformId> {
                $crate::kernel::record!(@platform self [$($platform)?] [$($audit_platform)?])
            }

            fn touch(&mut self, now: $crate::kernel::Timestamp) {
                let _ = now;
                $(self.$touched = now;)?
            }
        }
    };
    (@platform $this:ident [$platform:ident] []) => { Some(&$this.$platform) };
    (@platform $this:ident [] [$of:expr]) => {{
        let of: fn(&Self) -> Option<&$crate::kernel::PlatformId> = $of;
        of($this)
    }};
    (@platform $this:ident [] []) => { None };
}
pub(crate) use record;

/// A record as JSON without the fields named.
pub(crate) fn snapshot<R: serde::Serialize>(record: &R, hidden: &[&str]) -> Value {
    // Records are structs of text, numbers and words, which are always JSON.
    let mut snapshot = serde_json::to_value(record).unwrap_or(Value::Null);
    if let Some(fields) = snapshot.as_object_mut() {
        fields.retain(|name, _| !hidden.contains(&name.as_str()));
    }
    snapshot
}

/// Calls a macro with every record: its accessor in a unit of work, its type and, where it has an id of its own, the
/// type of that id and what it names.
#[macro_export]
macro_rules! for_each_record {
    ($callback:ident) => {
        $callback! {
            // shared
            audit_entries: $crate::shared::AuditEntry, AuditId "An audit entry.";
            audit_seals: $crate::shared::AuditSeal;
            audit_heads: $crate::shared::AuditHead;
            audit_checkpoints: $crate::shared::AuditCheckpoint, AuditCheckpointId "A checkpoint of the audit.";
            outbox_messages: $crate::shared::OutboxMessage, OutboxId "A message waiting to leave the process.";
            idempotency_keys: $crate::shared::IdempotencyKey;
            mail_quotas: $crate::shared::MailQuota;
            maintenance_leases: $crate::shared::MaintenanceLease;
            webhooks: $crate::shared::Webhook, WebhookId "A webhook (never its secrets).";
            webhook_deliveries: $crate::shared::WebhookDelivery, WebhookDeliveryId "A message to a webhook.";
            // iam
            users: $crate::iam::User, UserId "A person.";
            accounts: $crate::iam::Account, AccountId "A way a user proves who they are (a password, say).";
            sessions: $crate::iam::Session, SessionId "A signed-in session (never its token).";
            verifications: $crate::iam::Verification, VerificationId "A token that was sent by mail.";
            organizations: $crate::iam::Organization, OrganizationId "An organization.";
            members: $crate::iam::Member, MemberId "A user's membership in an organization.";
            invitations: $crate::iam::Invitation, InvitationId "An invitation to an organization.";
            device_authorizations: $crate::iam::DeviceAuthorization, DeviceAuthorizationId "A device that wants to sign in.";
            access_tokens: $crate::iam::AccessToken;
            refresh_tokens: $crate::iam::RefreshToken;
            signing_keys: $crate::iam::SigningKey;
            two_factors: $crate::iam::TwoFactor;
            two_factor_challenges: $crate::iam::TwoFactorChallenge;
            trusted_devices: $crate::iam::TrustedDevice;
            passkeys: $crate::iam::Passkey, PasskeyId "A passkey (never its key).";
            passkey_challenges: $crate::iam::PasskeyChallenge;
            platform_suspensions: $crate::iam::PlatformSuspension;
            api_keys: $crate::iam::ApiKey, ApiKeyId "An API key (never its secret).";
            // provisioning
            jobs: $crate::provisioning::Job, JobId "A provisioning job.";
            job_events: $crate::provisioning::JobEvent, JobEventId "An entry of the job history.";
            job_lanes: $crate::provisioning::JobLane;
            job_leases: $crate::provisioning::JobLease;
            job_holds: $crate::provisioning::JobHold, HoldId "A hold on job claims.";
            dlq_entries: $crate::provisioning::DlqEntry, DlqEntryId "An entry of the dead-letter queue.";
            // registry
            platforms: $crate::registry::Platform, PlatformId "A platform: the tenant of the suite.";
            lifecycle_records: $crate::registry::LifecycleRecord, LifecycleId "A platform lifecycle record.";
            entities: $crate::registry::Entity, EntityId "A tenant or sub-tenant of a platform.";
            resources: $crate::registry::Resource, ResourceId "An infrastructure resource.";
            resource_secrets: $crate::registry::ResourceSecret, ResourceSecretId "A secret of a resource (never its value).";
            feature_activations: $crate::registry::FeatureActivation, FeatureActivationId "A feature of an entity.";
            builds: $crate::registry::Build, BuildId "A build of a platform.";
            dns_records: $crate::registry::DnsRecord, DnsRecordId "A DNS record.";
            custom_domains: $crate::registry::CustomDomain, CustomDomainId "A custom domain.";
            deployments: $crate::registry::Deployment, DeploymentId "A deployment of a built site.";
            workspace_stacks: $crate::registry::WorkspaceStack, StackId "A workspace stack.";
            platform_configs: $crate::registry::PlatformConfig, ConfigId "A key of a platform's configuration.";
            config_versions: $crate::registry::ConfigVersion, ConfigVersionId "A version of a platform's configuration.";
            onboardings: $crate::registry::Onboarding, OnboardingId "A run of the onboarding flow.";
            // stacks
            stack_templates: $crate::stacks::StackTemplate, TemplateId "A stack template.";
            stack_versions: $crate::stacks::StackVersion, VersionId "A version of a stack template.";
        }
    };
}
pub use for_each_record;
