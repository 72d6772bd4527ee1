-- release 0.1.0
-- only in a new database

ALTER TABLE "audit_entries"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID;
ALTER TABLE "unsealed_audit_entries"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID;
ALTER TABLE "audit_seals"
    ALTER COLUMN "entry_id" TYPE UUID USING "entry_id"::UUID;
ALTER TABLE "audit_checkpoints"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID;
ALTER TABLE "outbox_messages"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID;
ALTER TABLE "webhooks"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "webhook_deliveries"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "webhook_id" TYPE UUID USING "webhook_id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "accounts"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID;
ALTER TABLE "sessions"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "active_organization_id" TYPE UUID USING "active_organization_id"::UUID;
ALTER TABLE "verifications"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID;
ALTER TABLE "organizations"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "members"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "organization_id" TYPE UUID USING "organization_id"::UUID;
ALTER TABLE "invitations"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "organization_id" TYPE UUID USING "organization_id"::UUID;
ALTER TABLE "device_authorizations"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "organization_id" TYPE UUID USING "organization_id"::UUID;
ALTER TABLE "access_tokens"
    ALTER COLUMN "session_id" TYPE UUID USING "session_id"::UUID;
ALTER TABLE "refresh_tokens"
    ALTER COLUMN "session_id" TYPE UUID USING "session_id"::UUID;
ALTER TABLE "passkeys"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID;
ALTER TABLE "platform_suspensions"
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "api_keys"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "organization_id" TYPE UUID USING "organization_id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "jobs"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID,
    ALTER COLUMN "dlq_entry_id" TYPE UUID USING "dlq_entry_id"::UUID,
    ALTER COLUMN "parent_job_id" TYPE UUID USING "parent_job_id"::UUID;
ALTER TABLE "job_events"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "job_id" TYPE UUID USING "job_id"::UUID;
ALTER TABLE "job_lanes"
    ALTER COLUMN "running_job_id" TYPE UUID USING "running_job_id"::UUID;
ALTER TABLE "job_leases"
    ALTER COLUMN "job_id" TYPE UUID USING "job_id"::UUID;
ALTER TABLE "job_holds"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID;
ALTER TABLE "dlq_entries"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "job_id" TYPE UUID USING "job_id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "platforms"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "organization_id" TYPE UUID USING "organization_id"::UUID;
ALTER TABLE "lifecycle_records"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "entities"
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "resources"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID,
    ALTER COLUMN "feature_activation_id" TYPE UUID USING "feature_activation_id"::UUID,
    ALTER COLUMN "provision_job_id" TYPE UUID USING "provision_job_id"::UUID,
    ALTER COLUMN "removal_job_id" TYPE UUID USING "removal_job_id"::UUID;
ALTER TABLE "resource_secrets"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID,
    ALTER COLUMN "resource_id" TYPE UUID USING "resource_id"::UUID;
ALTER TABLE "feature_activations"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID,
    ALTER COLUMN "provision_job_id" TYPE UUID USING "provision_job_id"::UUID;
ALTER TABLE "builds"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID,
    ALTER COLUMN "job_id" TYPE UUID USING "job_id"::UUID;
ALTER TABLE "dns_records"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID,
    ALTER COLUMN "resource_id" TYPE UUID USING "resource_id"::UUID,
    ALTER COLUMN "job_id" TYPE UUID USING "job_id"::UUID;
ALTER TABLE "custom_domains"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID,
    ALTER COLUMN "dns_record_id" TYPE UUID USING "dns_record_id"::UUID,
    ALTER COLUMN "job_id" TYPE UUID USING "job_id"::UUID;
ALTER TABLE "deployments"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID,
    ALTER COLUMN "job_id" TYPE UUID USING "job_id"::UUID,
    ALTER COLUMN "source_id" TYPE UUID USING "source_id"::UUID;
ALTER TABLE "workspace_stacks"
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID,
    ALTER COLUMN "version_id" TYPE UUID USING "version_id"::UUID,
    ALTER COLUMN "provision_job_id" TYPE UUID USING "provision_job_id"::UUID;
ALTER TABLE "platform_configs"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "config_versions"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "onboardings"
    ALTER COLUMN "stack_template_id" TYPE UUID USING "stack_template_id"::UUID,
    ALTER COLUMN "session_id" TYPE UUID USING "session_id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID,
    ALTER COLUMN "job_id" TYPE UUID USING "job_id"::UUID;
ALTER TABLE "deploy_plans"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "billing_customers"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "billing_subscriptions"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID,
    ALTER COLUMN "customer_id" TYPE UUID USING "customer_id"::UUID,
    ALTER COLUMN "latest_invoice_id" TYPE UUID USING "latest_invoice_id"::UUID;
ALTER TABLE "billing_invoices"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID,
    ALTER COLUMN "customer_id" TYPE UUID USING "customer_id"::UUID,
    ALTER COLUMN "subscription_id" TYPE UUID USING "subscription_id"::UUID;
ALTER TABLE "billing_payment_attempts"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "invoice_id" TYPE UUID USING "invoice_id"::UUID,
    ALTER COLUMN "customer_id" TYPE UUID USING "customer_id"::UUID;
ALTER TABLE "billing_operations"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "subscription_id" TYPE UUID USING "subscription_id"::UUID,
    ALTER COLUMN "customer_id" TYPE UUID USING "customer_id"::UUID,
    ALTER COLUMN "invoice_id" TYPE UUID USING "invoice_id"::UUID;
ALTER TABLE "billing_credit_grants"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "customer_id" TYPE UUID USING "customer_id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "billing_journal_entries"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "customer_id" TYPE UUID USING "customer_id"::UUID;
ALTER TABLE "billing_received_events"
    ALTER COLUMN "customer_id" TYPE UUID USING "customer_id"::UUID;
ALTER TABLE "billing_portal_sessions"
    ALTER COLUMN "customer_id" TYPE UUID USING "customer_id"::UUID,
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "ledger_invoices"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID;
ALTER TABLE "ledger_charges"
    ALTER COLUMN "invoice_id" TYPE UUID USING "invoice_id"::UUID;
ALTER TABLE "usage_events"
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "usage_rollups"
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "usage_totals"
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "usage_tenants"
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "usage_periods"
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID,
    ALTER COLUMN "subscription_id" TYPE UUID USING "subscription_id"::UUID,
    ALTER COLUMN "customer_id" TYPE UUID USING "customer_id"::UUID,
    ALTER COLUMN "invoice_id" TYPE UUID USING "invoice_id"::UUID;
ALTER TABLE "usage_alerts"
    ALTER COLUMN "platform_id" TYPE UUID USING "platform_id"::UUID;
ALTER TABLE "stack_templates"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID;
ALTER TABLE "stack_versions"
    ALTER COLUMN "id" TYPE UUID USING "id"::UUID,
    ALTER COLUMN "template_id" TYPE UUID USING "template_id"::UUID;
