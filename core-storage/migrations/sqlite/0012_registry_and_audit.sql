DROP INDEX "audit_entries_by_actor_id_created_at";
DROP INDEX "audit_entries_by_created_at";
DROP INDEX "audit_entries_by_entity_id_created_at";
DROP INDEX "audit_entries_by_platform_id_created_at";
CREATE INDEX "audit_entries_by_created_at_if_stream" ON "audit_entries" ("created_at", "id") WHERE "stream" = 'changes';
CREATE INDEX "audit_entries_by_platform_id_created_at_if_stream" ON "audit_entries" ("platform_id", "created_at", "id") WHERE "stream" = 'changes';
CREATE INDEX "audit_entries_by_action_created_at_if_stream" ON "audit_entries" ("action", "created_at", "id") WHERE "stream" = 'changes';
CREATE INDEX "audit_entries_by_entity_type_created_at_if_stream" ON "audit_entries" ("entity_type", "created_at", "id") WHERE "stream" = 'changes';
CREATE INDEX "audit_entries_by_actor_id_created_at_if_stream" ON "audit_entries" ("actor_id", "created_at", "id") WHERE "stream" = 'changes';
CREATE INDEX "audit_entries_by_actor_id_action_created_at_if_stream" ON "audit_entries" ("actor_id", "action", "created_at", "id") WHERE "stream" = 'changes';
CREATE INDEX "audit_entries_by_actor_id_entity_type_created_at_if_stream" ON "audit_entries" ("actor_id", "entity_type", "created_at", "id") WHERE "stream" = 'changes';
CREATE INDEX "audit_entries_by_platform_id_action_created_at_if_stream" ON "audit_entries" ("platform_id", "action", "created_at", "id") WHERE "stream" = 'changes';
CREATE INDEX "audit_entries_by_platform_id_entity_type_created_at_if_stream" ON "audit_entries" ("platform_id", "entity_type", "created_at", "id") WHERE "stream" = 'changes';
CREATE INDEX "audit_entries_by_platform_id_entity_id_created_at_if_stream" ON "audit_entries" ("platform_id", "entity_id", "created_at", "id") WHERE "stream" = 'changes';
CREATE INDEX "audit_entries_by_platform_id_actor_id_created_at_if_stream" ON "audit_entries" ("platform_id", "actor_id", "created_at", "id") WHERE "stream" = 'changes';
CREATE INDEX "audit_entries_by_platform_id_actor_id_action_created_a_955caf10" ON "audit_entries" ("platform_id", "actor_id", "action", "created_at", "id") WHERE "stream" = 'changes';
CREATE INDEX "audit_entries_by_platform_id_actor_id_entity_type_crea_3db83085" ON "audit_entries" ("platform_id", "actor_id", "entity_type", "created_at", "id") WHERE "stream" = 'changes';
CREATE INDEX "audit_entries_by_platform_id_created_at_if_stream_2" ON "audit_entries" ("platform_id", "created_at", "id") WHERE "stream" = 'reads';
CREATE INDEX "audit_entries_by_created_at_if_stream_if_platform_id" ON "audit_entries" ("created_at", "id") WHERE "stream" = 'changes' AND "platform_id" IS NULL;
CREATE INDEX "audit_entries_by_created_at_if_stream_if_platform_id_2" ON "audit_entries" ("created_at", "id") WHERE "stream" = 'reads' AND "platform_id" IS NULL;

CREATE INDEX "jobs_by_kind_created_at_if_status_if_kind" ON "jobs" ("kind", "created_at", "id") WHERE "status" = 'COMPLETED' AND "kind" IN ('feature.activate');

DROP INDEX "platforms_by_organization_id_created_at";
CREATE INDEX "platforms_by_organization_id_created_at" ON "platforms" ("organization_id", "created_at", "id", "deleted_at");

CREATE INDEX "entities_by_platform_id_entity_type_created_at" ON "entities" ("platform_id", "entity_type", "created_at", "id", "deleted_at");

DROP INDEX "resources_by_entity_id_created_at";
CREATE INDEX "resources_by_platform_id_entity_id_created_at" ON "resources" ("platform_id", "entity_id", "created_at", "id", "deleted_at");

DROP INDEX "deployments_by_platform_id_status_created_at";
CREATE INDEX "deployments_by_platform_id_created_at_if_status" ON "deployments" ("platform_id", "created_at", "id") WHERE "status" IN ('queued', 'uploading', 'deploying');

CREATE TABLE "unsealed_entries" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "row_version" INTEGER NOT NULL
) STRICT;

CREATE TABLE "audit_seals" (
    "entry_id" TEXT NOT NULL PRIMARY KEY,
    "chain" TEXT NOT NULL,
    "seq" INTEGER NOT NULL,
    "position" INTEGER NOT NULL,
    "stream" TEXT NOT NULL,
    "previous_hash" TEXT NOT NULL,
    "hash" TEXT NOT NULL,
    "sealed_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "audit_seals_by_chain_seq" ON "audit_seals" ("chain", "seq", "entry_id");
CREATE INDEX "audit_seals_by_position" ON "audit_seals" ("position", "entry_id");
CREATE INDEX "audit_seals_by_chain_position" ON "audit_seals" ("chain", "position", "entry_id");

CREATE TABLE "audit_heads" (
    "chain" TEXT NOT NULL PRIMARY KEY,
    "seq" INTEGER NOT NULL,
    "changes" INTEGER NOT NULL,
    "hash" TEXT NOT NULL,
    "checkpoint_seq" INTEGER NOT NULL,
    "unchecked_since" INTEGER,
    "waits_since" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "audit_heads_by_waits_since" ON "audit_heads" ("waits_since", "chain");

CREATE TABLE "audit_checkpoints" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT,
    "chain" TEXT NOT NULL,
    "seq" INTEGER NOT NULL,
    "hash" TEXT NOT NULL,
    "signed_at" INTEGER NOT NULL,
    "jws" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "audit_checkpoints_by_signed_at" ON "audit_checkpoints" ("signed_at", "id");
CREATE INDEX "audit_checkpoints_by_platform_id_signed_at" ON "audit_checkpoints" ("platform_id", "signed_at", "id");
CREATE INDEX "audit_checkpoints_by_chain_seq" ON "audit_checkpoints" ("chain", "seq", "id");

CREATE TABLE "webhooks" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT,
    "url" TEXT NOT NULL,
    "description" TEXT,
    "event_types" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "disabled_reason" TEXT,
    "consecutive_failures" INTEGER NOT NULL,
    "failing_since" INTEGER,
    "secrets" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "owner" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "webhooks_by_owner_created_at" ON "webhooks" ("owner", "created_at", "id");
CREATE INDEX "webhooks_by_owner_if_status" ON "webhooks" ("owner", "id") WHERE "status" = 'enabled';

CREATE TABLE "webhook_deliveries" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "webhook_id" TEXT NOT NULL,
    "platform_id" TEXT,
    "event_id" TEXT,
    "event_type" TEXT NOT NULL,
    "payload" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "attempts" INTEGER NOT NULL,
    "next_attempt_at" INTEGER,
    "last_status" INTEGER,
    "last_error" TEXT,
    "attempt_log" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "due_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "webhook_deliveries_event" ON "webhook_deliveries" ("webhook_id", "event_id");
CREATE INDEX "webhook_deliveries_by_webhook_id_created_at" ON "webhook_deliveries" ("webhook_id", "created_at", "id");
CREATE INDEX "webhook_deliveries_by_webhook_id_status_created_at" ON "webhook_deliveries" ("webhook_id", "status", "created_at", "id");
CREATE INDEX "webhook_deliveries_by_platform_id" ON "webhook_deliveries" ("platform_id", "id");
CREATE INDEX "webhook_deliveries_by_due_at_if_status" ON "webhook_deliveries" ("due_at", "id", "webhook_id") WHERE "status" = 'pending';
CREATE INDEX "webhook_deliveries_by_updated_at_if_status" ON "webhook_deliveries" ("updated_at", "id") WHERE "status" IN ('succeeded', 'failed');

CREATE TABLE "resource_secrets" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "resource_id" TEXT NOT NULL,
    "secret_name" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "last_set_at" INTEGER,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "resource_secrets_name" ON "resource_secrets" ("resource_id", "secret_name");
CREATE INDEX "resource_secrets_by_platform_id_resource_id_created_at" ON "resource_secrets" ("platform_id", "resource_id", "created_at", "id");

CREATE TABLE "feature_activations" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "entity_id" TEXT NOT NULL,
    "feature_id" TEXT NOT NULL,
    "feature_version" TEXT NOT NULL,
    "environment" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "activated_at" INTEGER,
    "deactivated_at" INTEGER,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "provision_job_id" TEXT,
    "service_url" TEXT,
    "package" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "feature_activations_feature" ON "feature_activations" ("entity_id", "environment", "feature_id");
CREATE INDEX "feature_activations_by_platform_id_created_at" ON "feature_activations" ("platform_id", "created_at", "id");
CREATE INDEX "feature_activations_by_platform_id_entity_id_created_at" ON "feature_activations" ("platform_id", "entity_id", "created_at", "id");

CREATE TABLE "builds" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "environment" TEXT NOT NULL,
    "repo_name" TEXT,
    "last_commit_sha" TEXT,
    "cf_deployment_id" TEXT,
    "build_url" TEXT,
    "build_status" TEXT NOT NULL,
    "triggered_by" TEXT NOT NULL,
    "triggered_at" INTEGER NOT NULL,
    "completed_at" INTEGER,
    "updated_at" INTEGER NOT NULL,
    "created_at" INTEGER NOT NULL,
    "job_id" TEXT,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "builds_job" ON "builds" ("job_id");
CREATE INDEX "builds_by_platform_id_created_at" ON "builds" ("platform_id", "created_at", "id");
CREATE INDEX "builds_by_platform_id_environment_created_at" ON "builds" ("platform_id", "environment", "created_at", "id");

CREATE TABLE "dns_records" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "stack_id" TEXT NOT NULL,
    "hostname" TEXT NOT NULL,
    "target_type" TEXT NOT NULL,
    "resource_id" TEXT NOT NULL,
    "environment" TEXT NOT NULL,
    "cf_route_id" TEXT,
    "status" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "dns_records_hostname" ON "dns_records" ("hostname") WHERE "status" = 'active';
CREATE INDEX "dns_records_by_platform_id_stack_id_created_at" ON "dns_records" ("platform_id", "stack_id", "created_at", "id", "status");
CREATE INDEX "dns_records_by_resource_id_created_at_if_status" ON "dns_records" ("resource_id", "created_at", "id") WHERE "status" = 'active';

CREATE TABLE "custom_domains" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "dns_record_id" TEXT NOT NULL,
    "hostname" TEXT NOT NULL,
    "target_dns" TEXT NOT NULL,
    "cf_hostname_id" TEXT,
    "ssl_status" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "verified_at" INTEGER,
    "missing_records" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "proof" TEXT NOT NULL,
    "checked_since" INTEGER,
    "job_id" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "custom_domains_hostname" ON "custom_domains" ("hostname") WHERE "status" IN ('pending', 'verifying', 'active', 'failed');
CREATE INDEX "custom_domains_by_platform_id_created_at" ON "custom_domains" ("platform_id", "created_at", "id");
CREATE INDEX "custom_domains_by_platform_id_created_at_if_status" ON "custom_domains" ("platform_id", "created_at", "id") WHERE "status" IN ('pending', 'verifying', 'active', 'failed');
CREATE INDEX "custom_domains_by_dns_record_id_created_at_if_status" ON "custom_domains" ("dns_record_id", "created_at", "id") WHERE "status" IN ('pending', 'verifying', 'active', 'failed');
CREATE INDEX "custom_domains_by_created_at_if_status" ON "custom_domains" ("created_at", "id") WHERE "status" IN ('pending', 'verifying');

CREATE TABLE "workspace_stacks" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "tenant_id" TEXT NOT NULL,
    "platform_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "template_id" TEXT,
    "repo_name" TEXT,
    "status" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "is_default" INTEGER NOT NULL CHECK ("is_default" IN (0, 1)),
    "default_of" TEXT,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "workspace_stacks_name" ON "workspace_stacks" ("tenant_id", "name");
CREATE UNIQUE INDEX "workspace_stacks_default" ON "workspace_stacks" ("default_of") WHERE "default_of" IS NOT NULL;
CREATE INDEX "workspace_stacks_by_platform_id_created_at" ON "workspace_stacks" ("platform_id", "created_at", "id");
CREATE INDEX "workspace_stacks_by_platform_id_tenant_id_created_at" ON "workspace_stacks" ("platform_id", "tenant_id", "created_at", "id");

CREATE TABLE "platform_configs" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "config_key" TEXT NOT NULL,
    "config_value" TEXT NOT NULL,
    "version" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "platform_configs_config_key" ON "platform_configs" ("platform_id", "config_key");

CREATE TABLE "config_versions" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "config_key" TEXT NOT NULL,
    "version" INTEGER NOT NULL,
    "config_value" TEXT NOT NULL,
    "actor_id" TEXT NOT NULL,
    "actor_type" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "config_versions_version" ON "config_versions" ("platform_id", "config_key", "version");
CREATE INDEX "config_versions_by_platform_id_config_key_version" ON "config_versions" ("platform_id", "config_key", "version", "id");

-- What the audit holds already waits to be sealed as well.
INSERT INTO "unsealed_entries" ("id", "row_version") SELECT "id", 1 FROM "audit_entries";
