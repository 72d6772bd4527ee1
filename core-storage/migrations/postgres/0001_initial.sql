CREATE TABLE "audit_entries" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "stream" TEXT COLLATE "C" NOT NULL,
    "platform_id" TEXT COLLATE "C",
    "actor_id" TEXT COLLATE "C" NOT NULL,
    "actor_type" TEXT COLLATE "C" NOT NULL,
    "action" TEXT COLLATE "C" NOT NULL,
    "entity_type" TEXT COLLATE "C" NOT NULL,
    "entity_id" TEXT COLLATE "C" NOT NULL,
    "before" TEXT COLLATE "C",
    "after" TEXT COLLATE "C",
    "metadata" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
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
CREATE OR REPLACE FUNCTION "refuse_change"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'rows of % are never changed or deleted', TG_TABLE_NAME; END $$;
CREATE TRIGGER "audit_entries_refuses_change" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_entries" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();

CREATE TABLE "unsealed_audit_entries" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "stream" TEXT COLLATE "C" NOT NULL,
    "platform_id" TEXT COLLATE "C",
    "actor_id" TEXT COLLATE "C" NOT NULL,
    "actor_type" TEXT COLLATE "C" NOT NULL,
    "action" TEXT COLLATE "C" NOT NULL,
    "entity_type" TEXT COLLATE "C" NOT NULL,
    "entity_id" TEXT COLLATE "C" NOT NULL,
    "before" TEXT COLLATE "C",
    "after" TEXT COLLATE "C",
    "metadata" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "unsealed_audit_entries_by_stream_created_at" ON "unsealed_audit_entries" ("stream", "created_at", "id");

CREATE TABLE "audit_seals" (
    "entry_id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "chain" TEXT COLLATE "C" NOT NULL,
    "seq" BIGINT NOT NULL,
    "position" BIGINT NOT NULL,
    "stream" TEXT COLLATE "C" NOT NULL,
    "previous_hash" TEXT COLLATE "C" NOT NULL,
    "hash" TEXT COLLATE "C" NOT NULL,
    "sealed_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "audit_seals_by_chain_seq" ON "audit_seals" ("chain", "seq", "entry_id");
CREATE INDEX "audit_seals_by_position" ON "audit_seals" ("position", "entry_id");
CREATE INDEX "audit_seals_by_chain_position" ON "audit_seals" ("chain", "position", "entry_id");
CREATE OR REPLACE FUNCTION "refuse_change"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'rows of % are never changed or deleted', TG_TABLE_NAME; END $$;
CREATE TRIGGER "audit_seals_refuses_change" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_seals" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();

CREATE TABLE "audit_heads" (
    "chain" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "seq" BIGINT NOT NULL,
    "changes" BIGINT NOT NULL,
    "hash" TEXT COLLATE "C" NOT NULL,
    "checkpoint_seq" BIGINT NOT NULL,
    "unchecked_since" BIGINT,
    "waits_since" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "audit_heads_by_waits_since" ON "audit_heads" ("waits_since", "chain");

CREATE TABLE "audit_checkpoints" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C",
    "chain" TEXT COLLATE "C" NOT NULL,
    "seq" BIGINT NOT NULL,
    "hash" TEXT COLLATE "C" NOT NULL,
    "signed_at" BIGINT NOT NULL,
    "jws" TEXT COLLATE "C" NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "audit_checkpoints_by_signed_at" ON "audit_checkpoints" ("signed_at", "id");
CREATE INDEX "audit_checkpoints_by_platform_id_signed_at" ON "audit_checkpoints" ("platform_id", "signed_at", "id");
CREATE INDEX "audit_checkpoints_by_chain_seq" ON "audit_checkpoints" ("chain", "seq", "id");
CREATE OR REPLACE FUNCTION "refuse_change"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'rows of % are never changed or deleted', TG_TABLE_NAME; END $$;
CREATE TRIGGER "audit_checkpoints_refuses_change" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_checkpoints" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();

CREATE TABLE "outbox_messages" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "topic" TEXT COLLATE "C" NOT NULL,
    "payload" TEXT COLLATE "C" NOT NULL,
    "attempts" BIGINT NOT NULL,
    "run_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "outbox_messages_by_run_at" ON "outbox_messages" ("run_at", "id");
CREATE INDEX "outbox_messages_by_run_at_if_topic" ON "outbox_messages" ("run_at", "id") WHERE "topic" = 'mail';

CREATE TABLE "idempotency_keys" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "request_hash" TEXT COLLATE "C" NOT NULL,
    "status" BIGINT NOT NULL,
    "headers" TEXT COLLATE "C" NOT NULL,
    "body" TEXT COLLATE "C" NOT NULL,
    "needs_proof" BOOLEAN NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "idempotency_keys_by_expires_at" ON "idempotency_keys" ("expires_at", "id");

CREATE TABLE "mail_quotas" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "sent_at" TEXT COLLATE "C" NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "mail_quotas_by_expires_at" ON "mail_quotas" ("expires_at", "id");

CREATE TABLE "maintenance_leases" (
    "task" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "holder" TEXT COLLATE "C" NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);

CREATE TABLE "webhooks" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C",
    "url" TEXT COLLATE "C" NOT NULL,
    "description" TEXT COLLATE "C",
    "event_types" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "disabled_reason" TEXT COLLATE "C",
    "consecutive_failures" BIGINT NOT NULL,
    "failing_since" BIGINT,
    "secrets" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "owner" TEXT COLLATE "C" NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "webhooks_by_owner_created_at" ON "webhooks" ("owner", "created_at", "id");
CREATE INDEX "webhooks_by_owner_if_status" ON "webhooks" ("owner", "id") WHERE "status" = 'enabled';

CREATE TABLE "webhook_deliveries" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "webhook_id" TEXT COLLATE "C" NOT NULL,
    "platform_id" TEXT COLLATE "C",
    "event_id" TEXT COLLATE "C",
    "event_type" TEXT COLLATE "C" NOT NULL,
    "payload" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "attempts" BIGINT NOT NULL,
    "next_attempt_at" BIGINT,
    "last_status" BIGINT,
    "last_error" TEXT COLLATE "C",
    "attempt_log" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "due_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "webhook_deliveries_event" ON "webhook_deliveries" ("webhook_id", "event_id");
CREATE INDEX "webhook_deliveries_by_webhook_id_created_at" ON "webhook_deliveries" ("webhook_id", "created_at", "id");
CREATE INDEX "webhook_deliveries_by_webhook_id_status_created_at" ON "webhook_deliveries" ("webhook_id", "status", "created_at", "id");
CREATE INDEX "webhook_deliveries_by_platform_id" ON "webhook_deliveries" ("platform_id", "id");
CREATE INDEX "webhook_deliveries_by_due_at_if_status" ON "webhook_deliveries" ("due_at", "id", "webhook_id") WHERE "status" = 'pending';
CREATE INDEX "webhook_deliveries_by_updated_at_if_status" ON "webhook_deliveries" ("updated_at", "id") WHERE "status" IN ('succeeded', 'failed');

CREATE TABLE "users" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "name" TEXT COLLATE "C" NOT NULL,
    "email" TEXT COLLATE "C" NOT NULL,
    "email_verified" BOOLEAN NOT NULL,
    "image" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "banned_at" BIGINT,
    "ban_reason" TEXT COLLATE "C",
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "users_email" ON "users" ("email");

CREATE TABLE "accounts" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "user_id" TEXT COLLATE "C" NOT NULL,
    "provider" TEXT COLLATE "C" NOT NULL,
    "password_hash" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "set_by_link_at" BIGINT,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "accounts_provider" ON "accounts" ("user_id", "provider");

CREATE TABLE "sessions" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "user_id" TEXT COLLATE "C" NOT NULL,
    "token_hash" TEXT COLLATE "C" NOT NULL,
    "client_id" TEXT COLLATE "C",
    "active_organization_id" TEXT COLLATE "C",
    "remembered" BOOLEAN NOT NULL,
    "ip_address" TEXT COLLATE "C",
    "user_agent" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "extended_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "authenticated_at" BIGINT,
    "second_factor_at" BIGINT,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "sessions_token" ON "sessions" ("token_hash");
CREATE INDEX "sessions_by_user_id_created_at" ON "sessions" ("user_id", "created_at", "id");
CREATE INDEX "sessions_by_expires_at" ON "sessions" ("expires_at", "id");

CREATE TABLE "verifications" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "purpose" TEXT COLLATE "C" NOT NULL,
    "token_hash" TEXT COLLATE "C" NOT NULL,
    "email" TEXT COLLATE "C" NOT NULL,
    "name" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "verifications_token" ON "verifications" ("token_hash");
CREATE INDEX "verifications_by_expires_at" ON "verifications" ("expires_at", "id");

CREATE TABLE "organizations" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "name" TEXT COLLATE "C" NOT NULL,
    "slug" TEXT COLLATE "C" NOT NULL,
    "kind" TEXT COLLATE "C" NOT NULL,
    "platform_id" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "logo" TEXT COLLATE "C",
    "metadata" TEXT COLLATE "C",
    "roles" TEXT COLLATE "C",
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "organizations_slug" ON "organizations" ("slug");
CREATE UNIQUE INDEX "organizations_platform" ON "organizations" ("platform_id");
CREATE UNIQUE INDEX "organizations_operator" ON "organizations" ("kind") WHERE "kind" = 'core-operator';

CREATE TABLE "members" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "organization_id" TEXT COLLATE "C" NOT NULL,
    "user_id" TEXT COLLATE "C" NOT NULL,
    "role" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "grants" TEXT COLLATE "C",
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "members_user" ON "members" ("organization_id", "user_id");
CREATE INDEX "members_by_user_id_created_at" ON "members" ("user_id", "created_at", "id");
CREATE INDEX "members_by_organization_id_created_at" ON "members" ("organization_id", "created_at", "id");

CREATE TABLE "invitations" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "organization_id" TEXT COLLATE "C" NOT NULL,
    "email" TEXT COLLATE "C" NOT NULL,
    "role" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "secret_hash" TEXT COLLATE "C",
    "expires_at" BIGINT NOT NULL,
    "inviter_id" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "invitations_pending" ON "invitations" ("organization_id", "email") WHERE "status" = 'pending';
CREATE INDEX "invitations_by_organization_id_created_at" ON "invitations" ("organization_id", "created_at", "id");
CREATE INDEX "invitations_by_email_created_at" ON "invitations" ("email", "created_at", "id");

CREATE TABLE "device_authorizations" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "device_code_hash" TEXT COLLATE "C" NOT NULL,
    "user_code" TEXT COLLATE "C" NOT NULL,
    "client_id" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "user_id" TEXT COLLATE "C",
    "organization_id" TEXT COLLATE "C",
    "interval" BIGINT NOT NULL,
    "polled_at" BIGINT,
    "ip_address" TEXT COLLATE "C",
    "user_agent" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "device_authorizations_device_code" ON "device_authorizations" ("device_code_hash");
CREATE UNIQUE INDEX "device_authorizations_user_code" ON "device_authorizations" ("user_code");
CREATE INDEX "device_authorizations_by_user_id_if_status" ON "device_authorizations" ("user_id", "id") WHERE "status" = 'approved';
CREATE INDEX "device_authorizations_by_expires_at" ON "device_authorizations" ("expires_at", "id");

CREATE TABLE "access_tokens" (
    "token_hash" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "session_id" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "access_tokens_by_session_id_created_at" ON "access_tokens" ("session_id", "created_at", "token_hash");
CREATE INDEX "access_tokens_by_expires_at" ON "access_tokens" ("expires_at", "token_hash");

CREATE TABLE "refresh_tokens" (
    "token_hash" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "session_id" TEXT COLLATE "C" NOT NULL,
    "predecessor_hash" TEXT COLLATE "C",
    "rotated_at" BIGINT,
    "successor_hash" TEXT COLLATE "C",
    "sealed_successor" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "refresh_tokens_by_session_id_created_at" ON "refresh_tokens" ("session_id", "created_at", "token_hash");
CREATE INDEX "refresh_tokens_by_expires_at" ON "refresh_tokens" ("expires_at", "token_hash");

CREATE TABLE "signing_keys" (
    "kid" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "generation" BIGINT NOT NULL,
    "public_key" TEXT COLLATE "C" NOT NULL,
    "sealed_private_key" TEXT COLLATE "C" NOT NULL,
    "active_from" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "signing_keys_generation" ON "signing_keys" ("generation");

CREATE TABLE "two_factors" (
    "user_id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "sealed_secret" TEXT COLLATE "C" NOT NULL,
    "confirmed_at" BIGINT,
    "last_step" BIGINT,
    "recovery_codes" TEXT COLLATE "C" NOT NULL,
    "failures" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);

CREATE TABLE "two_factor_challenges" (
    "token_hash" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "user_id" TEXT COLLATE "C" NOT NULL,
    "remembered" BOOLEAN NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "two_factor_challenges_by_user_id_created_at" ON "two_factor_challenges" ("user_id", "created_at", "token_hash");
CREATE INDEX "two_factor_challenges_by_expires_at" ON "two_factor_challenges" ("expires_at", "token_hash");

CREATE TABLE "trusted_devices" (
    "token_hash" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "user_id" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "ip_address" TEXT COLLATE "C",
    "user_agent" TEXT COLLATE "C",
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "trusted_devices_by_user_id_created_at" ON "trusted_devices" ("user_id", "created_at", "token_hash");
CREATE INDEX "trusted_devices_by_expires_at" ON "trusted_devices" ("expires_at", "token_hash");

CREATE TABLE "passkeys" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "user_id" TEXT COLLATE "C" NOT NULL,
    "name" TEXT COLLATE "C",
    "credential_id" TEXT COLLATE "C" NOT NULL,
    "credential" TEXT COLLATE "C" NOT NULL,
    "counter" BIGINT NOT NULL,
    "device_type" TEXT COLLATE "C" NOT NULL,
    "backed_up" BOOLEAN NOT NULL,
    "transports" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "last_used_at" BIGINT,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "passkeys_credential" ON "passkeys" ("credential_id");
CREATE INDEX "passkeys_by_user_id_created_at" ON "passkeys" ("user_id", "created_at", "id");

CREATE TABLE "passkey_challenges" (
    "token_hash" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "user_id" TEXT COLLATE "C",
    "state" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "passkey_challenges_by_user_id_created_at" ON "passkey_challenges" ("user_id", "created_at", "token_hash");
CREATE INDEX "passkey_challenges_by_expires_at" ON "passkey_challenges" ("expires_at", "token_hash");

CREATE TABLE "platform_suspensions" (
    "platform_id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "reason" TEXT COLLATE "C",
    "by_operator" BOOLEAN NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);

CREATE TABLE "api_keys" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "user_id" TEXT COLLATE "C",
    "organization_id" TEXT COLLATE "C",
    "platform_id" TEXT COLLATE "C",
    "name" TEXT COLLATE "C",
    "prefix" TEXT COLLATE "C",
    "start" TEXT COLLATE "C" NOT NULL,
    "scopes" TEXT COLLATE "C",
    "requests_per_minute" BIGINT NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "token_hash" TEXT COLLATE "C" NOT NULL,
    "previous_hash" TEXT COLLATE "C",
    "previous_until" BIGINT,
    "expires_at" BIGINT,
    "last_used_at" BIGINT,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "api_keys_token" ON "api_keys" ("token_hash");
CREATE UNIQUE INDEX "api_keys_previous" ON "api_keys" ("previous_hash");
CREATE INDEX "api_keys_by_user_id_created_at" ON "api_keys" ("user_id", "created_at", "id");
CREATE INDEX "api_keys_by_organization_id_created_at" ON "api_keys" ("organization_id", "created_at", "id");
CREATE INDEX "api_keys_by_platform_id" ON "api_keys" ("platform_id", "id");
CREATE INDEX "api_keys_by_updated_at_if_status" ON "api_keys" ("updated_at", "id") WHERE "status" = 'revoked';
CREATE INDEX "api_keys_by_expires_at_if_expires_at" ON "api_keys" ("expires_at", "id") WHERE "expires_at" IS NOT NULL;

CREATE TABLE "jobs" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "kind" TEXT COLLATE "C" NOT NULL,
    "definition_version" BIGINT NOT NULL,
    "platform_id" TEXT COLLATE "C",
    "entity_id" TEXT COLLATE "C",
    "environment" TEXT COLLATE "C",
    "lane" TEXT COLLATE "C" NOT NULL,
    "lane_position" BIGINT NOT NULL,
    "priority" BIGINT NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "reason" TEXT COLLATE "C",
    "failure_kind" TEXT COLLATE "C",
    "error" TEXT COLLATE "C",
    "input" TEXT COLLATE "C" NOT NULL,
    "output" TEXT COLLATE "C",
    "steps" TEXT COLLATE "C" NOT NULL,
    "attempts" BIGINT NOT NULL,
    "max_attempts" BIGINT NOT NULL,
    "lost_leases" BIGINT NOT NULL,
    "run_at" BIGINT NOT NULL,
    "deadline_at" BIGINT NOT NULL,
    "waiting_for" TEXT COLLATE "C",
    "forced" BOOLEAN NOT NULL,
    "replay_count" BIGINT NOT NULL,
    "dlq_entry_id" TEXT COLLATE "C",
    "parent_job_id" TEXT COLLATE "C",
    "idempotency_key" TEXT COLLATE "C",
    "request_id" TEXT COLLATE "C" NOT NULL,
    "trace_id" TEXT COLLATE "C",
    "created_by" TEXT COLLATE "C" NOT NULL,
    "fence" BIGINT NOT NULL,
    "event_count" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "started_at" BIGINT,
    "finished_at" BIGINT,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "jobs_idempotency_key" ON "jobs" ("idempotency_key") WHERE "idempotency_key" IS NOT NULL;
CREATE UNIQUE INDEX "jobs_running" ON "jobs" ("lane") WHERE "status" = 'RUNNING';
CREATE INDEX "jobs_by_created_at" ON "jobs" ("created_at", "id");
CREATE INDEX "jobs_by_platform_id_created_at" ON "jobs" ("platform_id", "created_at", "id");
CREATE INDEX "jobs_by_status_created_at" ON "jobs" ("status", "created_at", "id");
CREATE INDEX "jobs_by_lane_lane_position_if_status" ON "jobs" ("lane", "lane_position", "id") WHERE "status" = 'QUEUED';
CREATE INDEX "jobs_by_run_at_if_status" ON "jobs" ("run_at", "id") WHERE "status" = 'WAITING';
CREATE INDEX "jobs_by_deadline_at_if_status" ON "jobs" ("deadline_at", "id") WHERE "status" IN ('QUEUED', 'RUNNING', 'WAITING');
CREATE INDEX "jobs_by_kind_created_at_if_status_if_kind" ON "jobs" ("kind", "created_at", "id") WHERE "status" = 'COMPLETED' AND "kind" IN ('feature.activate');
CREATE INDEX "jobs_by_parent_job_id_if_parent_job_id" ON "jobs" ("parent_job_id", "id") WHERE "parent_job_id" IS NOT NULL;

CREATE TABLE "job_events" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "job_id" TEXT COLLATE "C" NOT NULL,
    "seq" BIGINT NOT NULL,
    "at" BIGINT NOT NULL,
    "event_type" TEXT COLLATE "C" NOT NULL,
    "from_status" TEXT COLLATE "C",
    "to_status" TEXT COLLATE "C" NOT NULL,
    "step" TEXT COLLATE "C",
    "fence" BIGINT NOT NULL,
    "actor" TEXT COLLATE "C" NOT NULL,
    "reason" TEXT COLLATE "C",
    "request_id" TEXT COLLATE "C",
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "job_events_seq" ON "job_events" ("job_id", "seq");

CREATE TABLE "job_lanes" (
    "lane" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "running_job_id" TEXT COLLATE "C",
    "state" TEXT COLLATE "C" NOT NULL,
    "ready_at" BIGINT NOT NULL,
    "not_before" BIGINT NOT NULL,
    "last_claimed_at" BIGINT NOT NULL,
    "front" BIGINT NOT NULL,
    "tail" BIGINT NOT NULL,
    "queued" BIGINT NOT NULL,
    "cached_jobs" TEXT COLLATE "C" NOT NULL,
    "held_by" TEXT COLLATE "C" NOT NULL,
    "head_kind" TEXT COLLATE "C",
    "head_priority" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "job_lanes_by_head_priority_last_claimed_at_if_state" ON "job_lanes" ("head_priority", "last_claimed_at", "lane") WHERE "state" = 'READY';
CREATE INDEX "job_lanes_by_head_kind_head_priority_last_claimed_at_if_state" ON "job_lanes" ("head_kind", "head_priority", "last_claimed_at", "lane") WHERE "state" = 'READY';
CREATE INDEX "job_lanes_by_ready_at_if_state" ON "job_lanes" ("ready_at", "lane") WHERE "state" = 'LATER';

CREATE TABLE "job_leases" (
    "job_id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "fence" BIGINT NOT NULL,
    "owner" TEXT COLLATE "C" NOT NULL,
    "lease_until" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);

CREATE TABLE "job_holds" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "scope" TEXT COLLATE "C" NOT NULL,
    "source" TEXT COLLATE "C" NOT NULL,
    "reason" TEXT COLLATE "C",
    "actor" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "job_holds_source" ON "job_holds" ("scope", "source");
CREATE INDEX "job_holds_by_scope_created_at" ON "job_holds" ("scope", "created_at", "id");
CREATE INDEX "job_holds_by_created_at" ON "job_holds" ("created_at", "id");

CREATE TABLE "dlq_entries" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "job_id" TEXT COLLATE "C" NOT NULL,
    "platform_id" TEXT COLLATE "C",
    "kind" TEXT COLLATE "C" NOT NULL,
    "environment" TEXT COLLATE "C",
    "status" TEXT COLLATE "C" NOT NULL,
    "failure_kind" TEXT COLLATE "C" NOT NULL,
    "failed_step" TEXT COLLATE "C",
    "error" TEXT COLLATE "C",
    "attempts" BIGINT NOT NULL,
    "input" TEXT COLLATE "C" NOT NULL,
    "request_id" TEXT COLLATE "C" NOT NULL,
    "trace_id" TEXT COLLATE "C",
    "replay_count" BIGINT NOT NULL,
    "replayed_at" BIGINT,
    "replayed_by" TEXT COLLATE "C",
    "resolved_at" BIGINT,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "dlq_entries_open" ON "dlq_entries" ("job_id") WHERE "status" IN ('PENDING', 'REPLAYED');
CREATE INDEX "dlq_entries_by_created_at" ON "dlq_entries" ("created_at", "id");
CREATE INDEX "dlq_entries_by_status_created_at" ON "dlq_entries" ("status", "created_at", "id");
CREATE INDEX "dlq_entries_by_platform_id_created_at" ON "dlq_entries" ("platform_id", "created_at", "id");
CREATE INDEX "dlq_entries_by_kind_created_at" ON "dlq_entries" ("kind", "created_at", "id");
CREATE INDEX "dlq_entries_by_job_id" ON "dlq_entries" ("job_id", "id");

CREATE TABLE "platforms" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "name" TEXT COLLATE "C" NOT NULL,
    "slug" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "tier" TEXT COLLATE "C" NOT NULL,
    "cf_account_id" TEXT COLLATE "C",
    "repo_name" TEXT COLLATE "C",
    "payment_customer_id" TEXT COLLATE "C",
    "owner_user_id" TEXT COLLATE "C",
    "organization_id" TEXT COLLATE "C",
    "cancelled_at" BIGINT,
    "cancellation_reason" TEXT COLLATE "C",
    "suspended_at" BIGINT,
    "suspension_reason" TEXT COLLATE "C",
    "trial_ends_at" BIGINT,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "deleted_at" BIGINT,
    "purging" BOOLEAN NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "platforms_slug" ON "platforms" ("slug") WHERE "deleted_at" IS NULL;
CREATE INDEX "platforms_by_created_at" ON "platforms" ("created_at", "id", "deleted_at");
CREATE INDEX "platforms_by_organization_id_created_at" ON "platforms" ("organization_id", "created_at", "id", "deleted_at");

CREATE TABLE "lifecycle_records" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "from_status" TEXT COLLATE "C",
    "to_status" TEXT COLLATE "C" NOT NULL,
    "triggered_by" TEXT COLLATE "C" NOT NULL,
    "trigger_type" TEXT COLLATE "C" NOT NULL,
    "reason" TEXT COLLATE "C",
    "metadata" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "lifecycle_records_by_platform_id_created_at" ON "lifecycle_records" ("platform_id", "created_at", "id");

CREATE TABLE "entities" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "parent_id" TEXT COLLATE "C",
    "depth" BIGINT NOT NULL,
    "entity_type" TEXT COLLATE "C" NOT NULL,
    "name" TEXT COLLATE "C" NOT NULL,
    "slug" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "deleted_at" BIGINT,
    "siblings" TEXT COLLATE "C" NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "entities_slug" ON "entities" ("platform_id", "siblings", "slug") WHERE "deleted_at" IS NULL;
CREATE INDEX "entities_by_platform_id_created_at" ON "entities" ("platform_id", "created_at", "id", "deleted_at");
CREATE INDEX "entities_by_platform_id_entity_type_created_at" ON "entities" ("platform_id", "entity_type", "created_at", "id", "deleted_at");
CREATE INDEX "entities_by_parent_id_created_at" ON "entities" ("parent_id", "created_at", "id", "deleted_at");

CREATE TABLE "resources" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "entity_id" TEXT COLLATE "C" NOT NULL,
    "stack_id" TEXT COLLATE "C",
    "feature_activation_id" TEXT COLLATE "C",
    "service_name" TEXT COLLATE "C" NOT NULL,
    "resource_type" TEXT COLLATE "C" NOT NULL,
    "environment" TEXT COLLATE "C" NOT NULL,
    "cf_name" TEXT COLLATE "C" NOT NULL,
    "cf_account_id" TEXT COLLATE "C",
    "cf_id" TEXT COLLATE "C",
    "cf_url" TEXT COLLATE "C",
    "status" TEXT COLLATE "C" NOT NULL,
    "provision_job_id" TEXT COLLATE "C",
    "removal_job_id" TEXT COLLATE "C",
    "config" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "deleted_at" BIGINT,
    "account" TEXT COLLATE "C" NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "resources_name" ON "resources" ("account", "resource_type", "cf_name") WHERE "deleted_at" IS NULL;
CREATE INDEX "resources_by_platform_id_created_at" ON "resources" ("platform_id", "created_at", "id", "deleted_at");
CREATE INDEX "resources_by_platform_id_entity_id_created_at" ON "resources" ("platform_id", "entity_id", "created_at", "id", "deleted_at");
CREATE INDEX "resources_by_platform_id_stack_id_created_at" ON "resources" ("platform_id", "stack_id", "created_at", "id", "deleted_at");
CREATE INDEX "resources_by_platform_id_feature_activation_id_created_4b48b2d9" ON "resources" ("platform_id", "feature_activation_id", "created_at", "id", "deleted_at") WHERE "feature_activation_id" IS NOT NULL;
CREATE INDEX "resources_by_platform_id_removal_job_id_created_at_if__bbe7aabd" ON "resources" ("platform_id", "removal_job_id", "created_at", "id") WHERE "removal_job_id" IS NOT NULL;
CREATE INDEX "resources_by_cf_name" ON "resources" ("cf_name", "id");

CREATE TABLE "resource_secrets" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "resource_id" TEXT COLLATE "C" NOT NULL,
    "secret_name" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "last_set_at" BIGINT,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "resource_secrets_name" ON "resource_secrets" ("resource_id", "secret_name");
CREATE INDEX "resource_secrets_by_platform_id_resource_id_created_at" ON "resource_secrets" ("platform_id", "resource_id", "created_at", "id");

CREATE TABLE "feature_activations" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "entity_id" TEXT COLLATE "C" NOT NULL,
    "feature_id" TEXT COLLATE "C" NOT NULL,
    "feature_version" TEXT COLLATE "C" NOT NULL,
    "environment" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "activated_at" BIGINT,
    "deactivated_at" BIGINT,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "provision_job_id" TEXT COLLATE "C",
    "service_url" TEXT COLLATE "C",
    "package" TEXT COLLATE "C" NOT NULL,
    "stack_id" TEXT COLLATE "C",
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "feature_activations_feature" ON "feature_activations" ("entity_id", "environment", "feature_id");
CREATE INDEX "feature_activations_by_platform_id_created_at" ON "feature_activations" ("platform_id", "created_at", "id");
CREATE INDEX "feature_activations_by_platform_id_entity_id_created_at" ON "feature_activations" ("platform_id", "entity_id", "created_at", "id");

CREATE TABLE "builds" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "environment" TEXT COLLATE "C" NOT NULL,
    "repo_name" TEXT COLLATE "C",
    "last_commit_sha" TEXT COLLATE "C",
    "cf_deployment_id" TEXT COLLATE "C",
    "build_url" TEXT COLLATE "C",
    "build_status" TEXT COLLATE "C" NOT NULL,
    "triggered_by" TEXT COLLATE "C" NOT NULL,
    "triggered_at" BIGINT NOT NULL,
    "completed_at" BIGINT,
    "updated_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "job_id" TEXT COLLATE "C",
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "builds_job" ON "builds" ("job_id");
CREATE INDEX "builds_by_platform_id_created_at" ON "builds" ("platform_id", "created_at", "id");
CREATE INDEX "builds_by_platform_id_environment_created_at" ON "builds" ("platform_id", "environment", "created_at", "id");

CREATE TABLE "dns_records" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "stack_id" TEXT COLLATE "C" NOT NULL,
    "hostname" TEXT COLLATE "C" NOT NULL,
    "target_type" TEXT COLLATE "C" NOT NULL,
    "resource_id" TEXT COLLATE "C" NOT NULL,
    "environment" TEXT COLLATE "C" NOT NULL,
    "cf_route_id" TEXT COLLATE "C",
    "status" TEXT COLLATE "C" NOT NULL,
    "missing_records" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "proof" TEXT COLLATE "C" NOT NULL,
    "is_vouched" BOOLEAN NOT NULL,
    "checked_since" BIGINT,
    "proof_missing_since" BIGINT,
    "job_id" TEXT COLLATE "C",
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "dns_records_entered" ON "dns_records" ("platform_id", "hostname") WHERE "status" IN ('pending', 'active', 'failed');
CREATE UNIQUE INDEX "dns_records_hostname" ON "dns_records" ("hostname") WHERE "status" = 'active';
CREATE INDEX "dns_records_by_platform_id_created_at" ON "dns_records" ("platform_id", "created_at", "id");
CREATE INDEX "dns_records_by_platform_id_stack_id_created_at" ON "dns_records" ("platform_id", "stack_id", "created_at", "id");
CREATE INDEX "dns_records_by_platform_id_stack_id_created_at_if_status" ON "dns_records" ("platform_id", "stack_id", "created_at", "id") WHERE "status" IN ('pending', 'active', 'failed');
CREATE INDEX "dns_records_by_resource_id_created_at_if_status" ON "dns_records" ("resource_id", "created_at", "id") WHERE "status" IN ('pending', 'active', 'failed');
CREATE INDEX "dns_records_by_hostname_created_at" ON "dns_records" ("hostname", "created_at", "id");
CREATE INDEX "dns_records_by_created_at_if_status" ON "dns_records" ("created_at", "id") WHERE "status" = 'active';

CREATE TABLE "custom_domains" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "dns_record_id" TEXT COLLATE "C" NOT NULL,
    "hostname" TEXT COLLATE "C" NOT NULL,
    "target_dns" TEXT COLLATE "C" NOT NULL,
    "cf_hostname_id" TEXT COLLATE "C",
    "ssl_status" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "verified_at" BIGINT,
    "missing_records" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "proof" TEXT COLLATE "C" NOT NULL,
    "checked_since" BIGINT,
    "job_id" TEXT COLLATE "C" NOT NULL,
    "is_vouched" BOOLEAN NOT NULL,
    "proof_missing_since" BIGINT,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "custom_domains_entered" ON "custom_domains" ("platform_id", "hostname") WHERE "status" IN ('pending', 'verifying', 'active', 'failed');
CREATE UNIQUE INDEX "custom_domains_hostname" ON "custom_domains" ("hostname") WHERE "status" = 'active';
CREATE INDEX "custom_domains_by_platform_id_created_at" ON "custom_domains" ("platform_id", "created_at", "id");
CREATE INDEX "custom_domains_by_platform_id_created_at_if_status" ON "custom_domains" ("platform_id", "created_at", "id") WHERE "status" IN ('pending', 'verifying', 'active', 'failed');
CREATE INDEX "custom_domains_by_dns_record_id_created_at_if_status" ON "custom_domains" ("dns_record_id", "created_at", "id") WHERE "status" IN ('pending', 'verifying', 'active', 'failed');
CREATE INDEX "custom_domains_by_created_at_if_status" ON "custom_domains" ("created_at", "id") WHERE "status" IN ('pending', 'verifying');
CREATE INDEX "custom_domains_by_hostname_created_at" ON "custom_domains" ("hostname", "created_at", "id");
CREATE INDEX "custom_domains_by_created_at_if_status_2" ON "custom_domains" ("created_at", "id") WHERE "status" = 'active';

CREATE TABLE "deployments" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "idempotency_key" TEXT COLLATE "C" NOT NULL,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "user_id" TEXT COLLATE "C" NOT NULL,
    "cf_deployment_id" TEXT COLLATE "C",
    "project_name" TEXT COLLATE "C" NOT NULL,
    "branch" TEXT COLLATE "C" NOT NULL,
    "url" TEXT COLLATE "C",
    "error_message" TEXT COLLATE "C",
    "status" TEXT COLLATE "C" NOT NULL,
    "file_count" BIGINT,
    "total_bytes" BIGINT,
    "started_at" BIGINT,
    "completed_at" BIGINT,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "content_hash" TEXT COLLATE "C",
    "job_id" TEXT COLLATE "C",
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "deployments_idempotency_key" ON "deployments" ("platform_id", "idempotency_key", "user_id");
CREATE INDEX "deployments_by_platform_id_created_at" ON "deployments" ("platform_id", "created_at", "id");
CREATE INDEX "deployments_by_platform_id_created_at_if_status" ON "deployments" ("platform_id", "created_at", "id") WHERE "status" IN ('queued', 'uploading', 'deploying');
CREATE INDEX "deployments_by_platform_id_branch_created_at" ON "deployments" ("platform_id", "branch", "created_at", "id");
CREATE INDEX "deployments_by_job_id_created_at" ON "deployments" ("job_id", "created_at", "id");

CREATE TABLE "workspace_stacks" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "name" TEXT COLLATE "C" NOT NULL,
    "template_id" TEXT COLLATE "C",
    "repo_name" TEXT COLLATE "C",
    "status" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "is_default" BOOLEAN NOT NULL,
    "version_id" TEXT COLLATE "C",
    "environment" TEXT COLLATE "C",
    "provision_job_id" TEXT COLLATE "C",
    "default_of" TEXT COLLATE "C",
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "workspace_stacks_name" ON "workspace_stacks" ("tenant_id", "name");
CREATE UNIQUE INDEX "workspace_stacks_default" ON "workspace_stacks" ("default_of") WHERE "default_of" IS NOT NULL;
CREATE INDEX "workspace_stacks_by_platform_id_created_at" ON "workspace_stacks" ("platform_id", "created_at", "id");
CREATE INDEX "workspace_stacks_by_platform_id_tenant_id_created_at" ON "workspace_stacks" ("platform_id", "tenant_id", "created_at", "id");
CREATE INDEX "workspace_stacks_by_platform_id_tenant_id_template_id__7cd74541" ON "workspace_stacks" ("platform_id", "tenant_id", "template_id", "environment", "created_at", "id");

CREATE TABLE "platform_configs" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "config_key" TEXT COLLATE "C" NOT NULL,
    "config_value" TEXT COLLATE "C" NOT NULL,
    "version" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "platform_configs_config_key" ON "platform_configs" ("platform_id", "config_key");

CREATE TABLE "config_versions" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "config_key" TEXT COLLATE "C" NOT NULL,
    "version" BIGINT NOT NULL,
    "config_value" TEXT COLLATE "C" NOT NULL,
    "actor_id" TEXT COLLATE "C" NOT NULL,
    "actor_type" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "config_versions_version" ON "config_versions" ("platform_id", "config_key", "version");
CREATE INDEX "config_versions_by_platform_id_config_key_version" ON "config_versions" ("platform_id", "config_key", "version", "id");

CREATE TABLE "onboardings" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "requested_by" TEXT COLLATE "C" NOT NULL,
    "requested_id" TEXT COLLATE "C",
    "platform_name" TEXT COLLATE "C" NOT NULL,
    "slug" TEXT COLLATE "C" NOT NULL,
    "tier" TEXT COLLATE "C" NOT NULL,
    "platform_tier" TEXT COLLATE "C" NOT NULL,
    "stack_template_id" TEXT COLLATE "C",
    "billing_email" TEXT COLLATE "C",
    "user_id" TEXT COLLATE "C",
    "session_id" TEXT COLLATE "C",
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "job_id" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "onboardings_slug" ON "onboardings" ("slug") WHERE "status" = 'open';
CREATE UNIQUE INDEX "onboardings_requested_id" ON "onboardings" ("requested_by", "requested_id");
CREATE INDEX "onboardings_by_requested_id" ON "onboardings" ("requested_id", "id");
CREATE INDEX "onboardings_by_user_id_created_at" ON "onboardings" ("user_id", "created_at", "id");

CREATE TABLE "stack_templates" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "name" TEXT COLLATE "C" NOT NULL,
    "display_name" TEXT COLLATE "C" NOT NULL,
    "description" TEXT COLLATE "C" NOT NULL,
    "icon" TEXT COLLATE "C",
    "domain" TEXT COLLATE "C",
    "latest_version" TEXT COLLATE "C",
    "status" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "stack_templates_name" ON "stack_templates" ("name");
CREATE INDEX "stack_templates_by_created_at" ON "stack_templates" ("created_at", "id");

CREATE TABLE "stack_versions" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "template_id" TEXT COLLATE "C" NOT NULL,
    "version" TEXT COLLATE "C" NOT NULL,
    "stack_definition" TEXT COLLATE "C" NOT NULL,
    "digest" TEXT COLLATE "C" NOT NULL,
    "core_sdk_version" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "published_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "precedence" TEXT COLLATE "C" NOT NULL,
    "pre_release" BOOLEAN NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "stack_versions_version" ON "stack_versions" ("template_id", "precedence");
CREATE INDEX "stack_versions_by_template_id_precedence" ON "stack_versions" ("template_id", "precedence", "id");
