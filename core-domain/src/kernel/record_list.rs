//! The list of all records.

/// Calls a macro with the list of all records. Each entry has the accessor of the repository and the type. Records with
/// an id of their own also have the type of the id and its documentation.
#[macro_export]
macro_rules! for_each_record {
    ($callback:ident) => {
        $callback! {
            // shared
            audit_entries: $crate::shared::AuditEntry, AuditId "The id of an audit entry.";
            audit_seals: $crate::shared::AuditSeal;
            audit_heads: $crate::shared::AuditHead;
            audit_checkpoints: $crate::shared::AuditCheckpoint, AuditCheckpointId "The id of a checkpoint of the audit log.";
            audit_archives: $crate::shared::AuditArchive;
            outbox_messages: $crate::shared::OutboxMessage, OutboxId "The id of a message in the outbox.";
            idempotency_keys: $crate::shared::StoredResponse;
            mail_quotas: $crate::shared::MailQuota;
            maintenance_leases: $crate::shared::MaintenanceLease;
            webhooks: $crate::shared::Webhook, WebhookId "The id of a webhook; not a secret.";
            webhook_deliveries: $crate::shared::WebhookDelivery, WebhookDeliveryId "The id of a delivery to a webhook.";
            // iam
            users: $crate::iam::User, UserId "The id of a user.";
            accounts: $crate::iam::Account, AccountId "The id of a sign-in account of a user, such as a password.";
            sessions: $crate::iam::Session, SessionId "The id of a session; not its token.";
            verifications: $crate::iam::Verification, VerificationId "The id of a token that was sent by mail; not the token.";
            organizations: $crate::iam::Organization, OrganizationId "The id of an organization.";
            members: $crate::iam::Member, MemberId "The id of a membership of a user in an organization.";
            invitations: $crate::iam::Invitation, InvitationId "The id of an invitation to an organization.";
            device_authorizations: $crate::iam::DeviceAuthorization, DeviceAuthorizationId "The id of a request of a device to sign in.";
            access_tokens: $crate::iam::AccessToken;
            refresh_tokens: $crate::iam::RefreshToken;
            signing_keys: $crate::iam::SigningKey;
            two_factors: $crate::iam::TwoFactor;
            two_factor_challenges: $crate::iam::TwoFactorChallenge;
            trusted_devices: $crate::iam::TrustedDevice;
            passkeys: $crate::iam::Passkey, PasskeyId "The id of a passkey; not its key.";
            passkey_challenges: $crate::iam::PasskeyChallenge;
            platform_suspensions: $crate::iam::PlatformSuspension;
            api_keys: $crate::iam::ApiKey, ApiKeyId "The id of an API key; not its secret.";
            // provisioning
            jobs: $crate::provisioning::Job, JobId "The id of a provisioning job.";
            job_events: $crate::provisioning::JobEvent, JobEventId "The id of an event in the history of a job.";
            job_lanes: $crate::provisioning::JobLane;
            job_leases: $crate::provisioning::JobLease;
            job_holds: $crate::provisioning::JobHold, HoldId "The id of a hold, which keeps jobs from being claimed.";
            dlq_entries: $crate::provisioning::DeadLetter, DlqEntryId "The id of a dead letter.";
            // registry
            platforms: $crate::registry::Platform, PlatformId "The id of a platform, which is a tenant of the suite.";
            lifecycle_records: $crate::registry::LifecycleRecord, LifecycleId "The id of a lifecycle record of a platform.";
            entities: $crate::registry::Entity, EntityId "The id of an entity: a tenant or sub-tenant of a platform.";
            resources: $crate::registry::Resource, ResourceId "The id of an infrastructure resource.";
            resource_secrets: $crate::registry::ResourceSecret, ResourceSecretId "The id of a secret of a resource; not its value.";
            feature_activations: $crate::registry::FeatureActivation, FeatureActivationId "The id of a feature activation of an entity.";
            builds: $crate::registry::Build, BuildId "The id of a build of a platform.";
            dns_records: $crate::registry::DnsRecord, DnsRecordId "The id of a DNS record.";
            custom_domains: $crate::registry::CustomDomain, CustomDomainId "The id of a custom domain.";
            deployments: $crate::registry::Deployment, DeploymentId "The id of a deployment of a built site.";
            workspace_stacks: $crate::registry::WorkspaceStack, StackId "The id of a workspace stack.";
            platform_configs: $crate::registry::PlatformConfig, ConfigId "The id of a key in the configuration of a platform.";
            config_versions: $crate::registry::ConfigVersion, ConfigVersionId "The id of a version of the configuration of a platform.";
            onboardings: $crate::registry::Onboarding, OnboardingId "The id of an onboarding.";
            // cli
            deploy_plans: $crate::cli::DeployPlan, DeployPlanId "The id of a deploy plan.";
            // billing
            customers: $crate::billing::Customer, CustomerId "The id of a customer of billing.";
            subscriptions: $crate::billing::Subscription, SubscriptionId "The id of a subscription.";
            invoices: $crate::billing::Invoice, InvoiceId "The id of an invoice.";
            payment_attempts: $crate::billing::PaymentAttempt, PaymentAttemptId "The id of an attempt to charge an invoice.";
            billing_operations: $crate::billing::BillingOperation, BillingOperationId "The id of a change that waits for a charge.";
            credit_grants: $crate::billing::CreditGrant, CreditGrantId "The id of a credit of a customer.";
            journal_entries: $crate::billing::JournalEntry, JournalEntryId "The id of an entry of the billing journal.";
            plan_versions: $crate::billing::PlanVersion;
            test_clocks: $crate::billing::TestClock;
            feed_cursors: $crate::billing::FeedCursor;
            received_events: $crate::billing::ReceivedEvent;
            portal_sessions: $crate::billing::PortalSession;
            ledger_methods: $crate::billing::LedgerMethod;
            ledger_setup_intents: $crate::billing::LedgerSetupIntent;
            ledger_invoices: $crate::billing::LedgerInvoice;
            ledger_charges: $crate::billing::LedgerCharge;
            usage_events: $crate::billing::usage::UsageEvent;
            usage_rollups: $crate::billing::usage::UsageRollup;
            usage_totals: $crate::billing::usage::UsageTotal;
            usage_tenants: $crate::billing::usage::UsageTenant;
            usage_periods: $crate::billing::usage::UsagePeriod, UsagePeriodId "The id of a usage period.";
            usage_alerts: $crate::billing::usage::UsageAlert;
            // stacks
            stack_templates: $crate::stacks::StackTemplate, TemplateId "The id of a stack template.";
            stack_versions: $crate::stacks::StackVersion, VersionId "The id of a version of a stack template.";
        }
    };
}

pub use for_each_record;
