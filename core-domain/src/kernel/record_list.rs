//! The one list of records and of the ids that name them. Adding a record starts here.

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
