CREATE TABLE "audit_entries" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "stream" TEXT NOT NULL,
    "platform_id" TEXT,
    "actor_id" TEXT NOT NULL,
    "actor_type" TEXT NOT NULL,
    "action" TEXT NOT NULL,
    "entity_type" TEXT NOT NULL,
    "entity_id" TEXT NOT NULL,
    "before" TEXT,
    "after" TEXT,
    "metadata" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
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
CREATE TRIGGER "audit_entries_refuses_update" BEFORE UPDATE ON "audit_entries" BEGIN SELECT RAISE(ABORT, 'rows of audit_entries are never changed or deleted'); END;
CREATE TRIGGER "audit_entries_refuses_delete" BEFORE DELETE ON "audit_entries" BEGIN SELECT RAISE(ABORT, 'rows of audit_entries are never changed or deleted'); END;

CREATE TABLE "unsealed_audit_entries" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "stream" TEXT NOT NULL,
    "platform_id" TEXT,
    "actor_id" TEXT NOT NULL,
    "actor_type" TEXT NOT NULL,
    "action" TEXT NOT NULL,
    "entity_type" TEXT NOT NULL,
    "entity_id" TEXT NOT NULL,
    "before" TEXT,
    "after" TEXT,
    "metadata" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "unsealed_audit_entries_by_stream_created_at" ON "unsealed_audit_entries" ("stream", "created_at", "id");

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
CREATE TRIGGER "audit_seals_refuses_update" BEFORE UPDATE ON "audit_seals" BEGIN SELECT RAISE(ABORT, 'rows of audit_seals are never changed or deleted'); END;
CREATE TRIGGER "audit_seals_refuses_delete" BEFORE DELETE ON "audit_seals" BEGIN SELECT RAISE(ABORT, 'rows of audit_seals are never changed or deleted'); END;

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
CREATE TRIGGER "audit_checkpoints_refuses_update" BEFORE UPDATE ON "audit_checkpoints" BEGIN SELECT RAISE(ABORT, 'rows of audit_checkpoints are never changed or deleted'); END;
CREATE TRIGGER "audit_checkpoints_refuses_delete" BEFORE DELETE ON "audit_checkpoints" BEGIN SELECT RAISE(ABORT, 'rows of audit_checkpoints are never changed or deleted'); END;

CREATE TABLE "outbox_messages" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "topic" TEXT NOT NULL,
    "payload" TEXT NOT NULL,
    "attempts" INTEGER NOT NULL,
    "run_at" INTEGER NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "outbox_messages_by_run_at" ON "outbox_messages" ("run_at", "id");
CREATE INDEX "outbox_messages_by_run_at_if_topic" ON "outbox_messages" ("run_at", "id") WHERE "topic" = 'mail';

CREATE TABLE "idempotency_keys" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "request_hash" TEXT NOT NULL,
    "status" INTEGER NOT NULL,
    "headers" TEXT NOT NULL,
    "body" TEXT NOT NULL,
    "needs_proof" INTEGER NOT NULL CHECK ("needs_proof" IN (0, 1)),
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "idempotency_keys_by_expires_at" ON "idempotency_keys" ("expires_at", "id");

CREATE TABLE "mail_quotas" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "sent_at" TEXT NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "mail_quotas_by_expires_at" ON "mail_quotas" ("expires_at", "id");

CREATE TABLE "maintenance_leases" (
    "task" TEXT NOT NULL PRIMARY KEY,
    "holder" TEXT NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;

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

CREATE TABLE "users" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "name" TEXT NOT NULL,
    "email" TEXT NOT NULL,
    "email_verified" INTEGER NOT NULL CHECK ("email_verified" IN (0, 1)),
    "image" TEXT,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "banned_at" INTEGER,
    "ban_reason" TEXT,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "users_email" ON "users" ("email");

CREATE TABLE "accounts" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT NOT NULL,
    "provider" TEXT NOT NULL,
    "password_hash" TEXT,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "set_by_link_at" INTEGER,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "accounts_provider" ON "accounts" ("user_id", "provider");

CREATE TABLE "sessions" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT NOT NULL,
    "token_hash" TEXT NOT NULL,
    "client_id" TEXT,
    "active_organization_id" TEXT,
    "remembered" INTEGER NOT NULL CHECK ("remembered" IN (0, 1)),
    "ip_address" TEXT,
    "user_agent" TEXT,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "extended_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "authenticated_at" INTEGER,
    "second_factor_at" INTEGER,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "sessions_token" ON "sessions" ("token_hash");
CREATE INDEX "sessions_by_user_id_created_at" ON "sessions" ("user_id", "created_at", "id");
CREATE INDEX "sessions_by_expires_at" ON "sessions" ("expires_at", "id");

CREATE TABLE "verifications" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "purpose" TEXT NOT NULL,
    "token_hash" TEXT NOT NULL,
    "email" TEXT NOT NULL,
    "name" TEXT,
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "verifications_token" ON "verifications" ("token_hash");
CREATE INDEX "verifications_by_expires_at" ON "verifications" ("expires_at", "id");

CREATE TABLE "organizations" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "name" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "platform_id" TEXT,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "logo" TEXT,
    "metadata" TEXT,
    "roles" TEXT,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "organizations_slug" ON "organizations" ("slug");
CREATE UNIQUE INDEX "organizations_platform" ON "organizations" ("platform_id");
CREATE UNIQUE INDEX "organizations_operator" ON "organizations" ("kind") WHERE "kind" = 'core-operator';

CREATE TABLE "members" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "organization_id" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "role" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "grants" TEXT,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "members_user" ON "members" ("organization_id", "user_id");
CREATE INDEX "members_by_user_id_created_at" ON "members" ("user_id", "created_at", "id");
CREATE INDEX "members_by_organization_id_created_at" ON "members" ("organization_id", "created_at", "id");

CREATE TABLE "invitations" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "organization_id" TEXT NOT NULL,
    "email" TEXT NOT NULL,
    "role" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "secret_hash" TEXT,
    "expires_at" INTEGER NOT NULL,
    "inviter_id" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "invitations_pending" ON "invitations" ("organization_id", "email") WHERE "status" = 'pending';
CREATE INDEX "invitations_by_organization_id_created_at" ON "invitations" ("organization_id", "created_at", "id");
CREATE INDEX "invitations_by_email_created_at" ON "invitations" ("email", "created_at", "id");

CREATE TABLE "device_authorizations" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "device_code_hash" TEXT NOT NULL,
    "user_code" TEXT NOT NULL,
    "client_id" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "user_id" TEXT,
    "organization_id" TEXT,
    "interval" INTEGER NOT NULL,
    "polled_at" INTEGER,
    "ip_address" TEXT,
    "user_agent" TEXT,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "device_authorizations_device_code" ON "device_authorizations" ("device_code_hash");
CREATE UNIQUE INDEX "device_authorizations_user_code" ON "device_authorizations" ("user_code");
CREATE INDEX "device_authorizations_by_user_id_if_status" ON "device_authorizations" ("user_id", "id") WHERE "status" = 'approved';
CREATE INDEX "device_authorizations_by_expires_at" ON "device_authorizations" ("expires_at", "id");

CREATE TABLE "access_tokens" (
    "token_hash" TEXT NOT NULL PRIMARY KEY,
    "session_id" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "access_tokens_by_session_id_created_at" ON "access_tokens" ("session_id", "created_at", "token_hash");
CREATE INDEX "access_tokens_by_expires_at" ON "access_tokens" ("expires_at", "token_hash");

CREATE TABLE "refresh_tokens" (
    "token_hash" TEXT NOT NULL PRIMARY KEY,
    "session_id" TEXT NOT NULL,
    "predecessor_hash" TEXT,
    "rotated_at" INTEGER,
    "successor_hash" TEXT,
    "sealed_successor" TEXT,
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "refresh_tokens_by_session_id_created_at" ON "refresh_tokens" ("session_id", "created_at", "token_hash");
CREATE INDEX "refresh_tokens_by_expires_at" ON "refresh_tokens" ("expires_at", "token_hash");

CREATE TABLE "signing_keys" (
    "kid" TEXT NOT NULL PRIMARY KEY,
    "generation" INTEGER NOT NULL,
    "public_key" TEXT NOT NULL,
    "sealed_private_key" TEXT NOT NULL,
    "active_from" INTEGER NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "signing_keys_generation" ON "signing_keys" ("generation");

CREATE TABLE "two_factors" (
    "user_id" TEXT NOT NULL PRIMARY KEY,
    "sealed_secret" TEXT NOT NULL,
    "confirmed_at" INTEGER,
    "last_step" INTEGER,
    "recovery_codes" TEXT NOT NULL,
    "failures" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;

CREATE TABLE "two_factor_challenges" (
    "token_hash" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT NOT NULL,
    "remembered" INTEGER NOT NULL CHECK ("remembered" IN (0, 1)),
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "two_factor_challenges_by_user_id_created_at" ON "two_factor_challenges" ("user_id", "created_at", "token_hash");
CREATE INDEX "two_factor_challenges_by_expires_at" ON "two_factor_challenges" ("expires_at", "token_hash");

CREATE TABLE "trusted_devices" (
    "token_hash" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "ip_address" TEXT,
    "user_agent" TEXT,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "trusted_devices_by_user_id_created_at" ON "trusted_devices" ("user_id", "created_at", "token_hash");
CREATE INDEX "trusted_devices_by_expires_at" ON "trusted_devices" ("expires_at", "token_hash");

CREATE TABLE "passkeys" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT NOT NULL,
    "name" TEXT,
    "credential_id" TEXT NOT NULL,
    "credential" TEXT NOT NULL,
    "counter" INTEGER NOT NULL,
    "device_type" TEXT NOT NULL,
    "backed_up" INTEGER NOT NULL CHECK ("backed_up" IN (0, 1)),
    "transports" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "last_used_at" INTEGER,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "passkeys_credential" ON "passkeys" ("credential_id");
CREATE INDEX "passkeys_by_user_id_created_at" ON "passkeys" ("user_id", "created_at", "id");

CREATE TABLE "passkey_challenges" (
    "token_hash" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT,
    "state" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "passkey_challenges_by_user_id_created_at" ON "passkey_challenges" ("user_id", "created_at", "token_hash");
CREATE INDEX "passkey_challenges_by_expires_at" ON "passkey_challenges" ("expires_at", "token_hash");

CREATE TABLE "platform_suspensions" (
    "platform_id" TEXT NOT NULL PRIMARY KEY,
    "reason" TEXT,
    "by_operator" INTEGER NOT NULL CHECK ("by_operator" IN (0, 1)),
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;

CREATE TABLE "api_keys" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT,
    "organization_id" TEXT,
    "platform_id" TEXT,
    "name" TEXT,
    "prefix" TEXT,
    "start" TEXT NOT NULL,
    "scopes" TEXT,
    "requests_per_minute" INTEGER NOT NULL,
    "status" TEXT NOT NULL,
    "token_hash" TEXT NOT NULL,
    "previous_hash" TEXT,
    "previous_until" INTEGER,
    "expires_at" INTEGER,
    "last_used_at" INTEGER,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "api_keys_token" ON "api_keys" ("token_hash");
CREATE UNIQUE INDEX "api_keys_previous" ON "api_keys" ("previous_hash");
CREATE INDEX "api_keys_by_user_id_created_at" ON "api_keys" ("user_id", "created_at", "id");
CREATE INDEX "api_keys_by_organization_id_created_at" ON "api_keys" ("organization_id", "created_at", "id");
CREATE INDEX "api_keys_by_platform_id" ON "api_keys" ("platform_id", "id");
CREATE INDEX "api_keys_by_updated_at_if_status" ON "api_keys" ("updated_at", "id") WHERE "status" = 'revoked';
CREATE INDEX "api_keys_by_expires_at_if_expires_at" ON "api_keys" ("expires_at", "id") WHERE "expires_at" IS NOT NULL;

CREATE TABLE "jobs" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "kind" TEXT NOT NULL,
    "definition_version" INTEGER NOT NULL,
    "platform_id" TEXT,
    "entity_id" TEXT,
    "environment" TEXT,
    "lane" TEXT NOT NULL,
    "lane_position" INTEGER NOT NULL,
    "priority" INTEGER NOT NULL,
    "status" TEXT NOT NULL,
    "reason" TEXT,
    "failure_kind" TEXT,
    "error" TEXT,
    "input" TEXT NOT NULL,
    "output" TEXT,
    "steps" TEXT NOT NULL,
    "attempts" INTEGER NOT NULL,
    "max_attempts" INTEGER NOT NULL,
    "lost_leases" INTEGER NOT NULL,
    "run_at" INTEGER NOT NULL,
    "deadline_at" INTEGER NOT NULL,
    "waiting_for" TEXT,
    "forced" INTEGER NOT NULL CHECK ("forced" IN (0, 1)),
    "replay_count" INTEGER NOT NULL,
    "dlq_entry_id" TEXT,
    "parent_job_id" TEXT,
    "idempotency_key" TEXT,
    "request_id" TEXT NOT NULL,
    "trace_id" TEXT,
    "created_by" TEXT NOT NULL,
    "fence" INTEGER NOT NULL,
    "event_count" INTEGER NOT NULL,
    "created_at" INTEGER NOT NULL,
    "started_at" INTEGER,
    "finished_at" INTEGER,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
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
    "id" TEXT NOT NULL PRIMARY KEY,
    "job_id" TEXT NOT NULL,
    "seq" INTEGER NOT NULL,
    "at" INTEGER NOT NULL,
    "event_type" TEXT NOT NULL,
    "from_status" TEXT,
    "to_status" TEXT NOT NULL,
    "step" TEXT,
    "fence" INTEGER NOT NULL,
    "actor" TEXT NOT NULL,
    "reason" TEXT,
    "request_id" TEXT,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "job_events_seq" ON "job_events" ("job_id", "seq");

CREATE TABLE "job_lanes" (
    "lane" TEXT NOT NULL PRIMARY KEY,
    "running_job_id" TEXT,
    "state" TEXT NOT NULL,
    "ready_at" INTEGER NOT NULL,
    "not_before" INTEGER NOT NULL,
    "last_claimed_at" INTEGER NOT NULL,
    "front" INTEGER NOT NULL,
    "tail" INTEGER NOT NULL,
    "queued" INTEGER NOT NULL,
    "cached_jobs" TEXT NOT NULL,
    "held_by" TEXT NOT NULL,
    "head_kind" TEXT,
    "head_priority" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "job_lanes_by_head_priority_last_claimed_at_if_state" ON "job_lanes" ("head_priority", "last_claimed_at", "lane") WHERE "state" = 'READY';
CREATE INDEX "job_lanes_by_head_kind_head_priority_last_claimed_at_if_state" ON "job_lanes" ("head_kind", "head_priority", "last_claimed_at", "lane") WHERE "state" = 'READY';
CREATE INDEX "job_lanes_by_ready_at_if_state" ON "job_lanes" ("ready_at", "lane") WHERE "state" = 'LATER';

CREATE TABLE "job_leases" (
    "job_id" TEXT NOT NULL PRIMARY KEY,
    "fence" INTEGER NOT NULL,
    "owner" TEXT NOT NULL,
    "lease_until" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;

CREATE TABLE "job_holds" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "scope" TEXT NOT NULL,
    "source" TEXT NOT NULL,
    "reason" TEXT,
    "actor" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "job_holds_source" ON "job_holds" ("scope", "source");
CREATE INDEX "job_holds_by_scope_created_at" ON "job_holds" ("scope", "created_at", "id");
CREATE INDEX "job_holds_by_created_at" ON "job_holds" ("created_at", "id");

CREATE TABLE "dlq_entries" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "job_id" TEXT NOT NULL,
    "platform_id" TEXT,
    "kind" TEXT NOT NULL,
    "environment" TEXT,
    "status" TEXT NOT NULL,
    "failure_kind" TEXT NOT NULL,
    "failed_step" TEXT,
    "error" TEXT,
    "attempts" INTEGER NOT NULL,
    "input" TEXT NOT NULL,
    "request_id" TEXT NOT NULL,
    "trace_id" TEXT,
    "replay_count" INTEGER NOT NULL,
    "replayed_at" INTEGER,
    "replayed_by" TEXT,
    "resolved_at" INTEGER,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "dlq_entries_open" ON "dlq_entries" ("job_id") WHERE "status" IN ('PENDING', 'REPLAYED');
CREATE INDEX "dlq_entries_by_created_at" ON "dlq_entries" ("created_at", "id");
CREATE INDEX "dlq_entries_by_status_created_at" ON "dlq_entries" ("status", "created_at", "id");
CREATE INDEX "dlq_entries_by_platform_id_created_at" ON "dlq_entries" ("platform_id", "created_at", "id");
CREATE INDEX "dlq_entries_by_kind_created_at" ON "dlq_entries" ("kind", "created_at", "id");
CREATE INDEX "dlq_entries_by_job_id" ON "dlq_entries" ("job_id", "id");

CREATE TABLE "platforms" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "name" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "tier" TEXT NOT NULL,
    "cf_account_id" TEXT,
    "repo_name" TEXT,
    "payment_customer_id" TEXT,
    "owner_user_id" TEXT,
    "organization_id" TEXT,
    "cancelled_at" INTEGER,
    "cancellation_reason" TEXT,
    "suspended_at" INTEGER,
    "suspension_reason" TEXT,
    "trial_ends_at" INTEGER,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "deleted_at" INTEGER,
    "purging" INTEGER NOT NULL CHECK ("purging" IN (0, 1)),
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "platforms_slug" ON "platforms" ("slug") WHERE "deleted_at" IS NULL;
CREATE INDEX "platforms_by_created_at" ON "platforms" ("created_at", "id", "deleted_at");
CREATE INDEX "platforms_by_organization_id_created_at" ON "platforms" ("organization_id", "created_at", "id", "deleted_at");

CREATE TABLE "lifecycle_records" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "from_status" TEXT,
    "to_status" TEXT NOT NULL,
    "triggered_by" TEXT NOT NULL,
    "trigger_type" TEXT NOT NULL,
    "reason" TEXT,
    "metadata" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "lifecycle_records_by_platform_id_created_at" ON "lifecycle_records" ("platform_id", "created_at", "id");

CREATE TABLE "entities" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "parent_id" TEXT,
    "depth" INTEGER NOT NULL,
    "entity_type" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "deleted_at" INTEGER,
    "siblings" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "entities_slug" ON "entities" ("platform_id", "siblings", "slug") WHERE "deleted_at" IS NULL;
CREATE INDEX "entities_by_platform_id_created_at" ON "entities" ("platform_id", "created_at", "id", "deleted_at");
CREATE INDEX "entities_by_platform_id_entity_type_created_at" ON "entities" ("platform_id", "entity_type", "created_at", "id", "deleted_at");
CREATE INDEX "entities_by_parent_id_created_at" ON "entities" ("parent_id", "created_at", "id", "deleted_at");

CREATE TABLE "resources" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "entity_id" TEXT NOT NULL,
    "stack_id" TEXT,
    "feature_activation_id" TEXT,
    "service_name" TEXT NOT NULL,
    "resource_type" TEXT NOT NULL,
    "environment" TEXT NOT NULL,
    "cf_name" TEXT NOT NULL,
    "cf_account_id" TEXT,
    "cf_id" TEXT,
    "cf_url" TEXT,
    "status" TEXT NOT NULL,
    "provision_job_id" TEXT,
    "removal_job_id" TEXT,
    "config" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "deleted_at" INTEGER,
    "account" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "resources_name" ON "resources" ("account", "resource_type", "cf_name") WHERE "deleted_at" IS NULL;
CREATE INDEX "resources_by_platform_id_created_at" ON "resources" ("platform_id", "created_at", "id", "deleted_at");
CREATE INDEX "resources_by_platform_id_entity_id_created_at" ON "resources" ("platform_id", "entity_id", "created_at", "id", "deleted_at");
CREATE INDEX "resources_by_platform_id_stack_id_created_at" ON "resources" ("platform_id", "stack_id", "created_at", "id", "deleted_at");
CREATE INDEX "resources_by_platform_id_feature_activation_id_created_4b48b2d9" ON "resources" ("platform_id", "feature_activation_id", "created_at", "id", "deleted_at") WHERE "feature_activation_id" IS NOT NULL;
CREATE INDEX "resources_by_platform_id_removal_job_id_created_at_if__bbe7aabd" ON "resources" ("platform_id", "removal_job_id", "created_at", "id") WHERE "removal_job_id" IS NOT NULL;
CREATE INDEX "resources_by_cf_name" ON "resources" ("cf_name", "id");

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
    "stack_id" TEXT,
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
    "missing_records" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "proof" TEXT NOT NULL,
    "is_vouched" INTEGER NOT NULL CHECK ("is_vouched" IN (0, 1)),
    "checked_since" INTEGER,
    "proof_missing_since" INTEGER,
    "job_id" TEXT,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "dns_records_entered" ON "dns_records" ("platform_id", "hostname") WHERE "status" IN ('pending', 'active', 'failed');
CREATE UNIQUE INDEX "dns_records_hostname" ON "dns_records" ("hostname") WHERE "status" = 'active';
CREATE INDEX "dns_records_by_platform_id_created_at" ON "dns_records" ("platform_id", "created_at", "id");
CREATE INDEX "dns_records_by_platform_id_stack_id_created_at" ON "dns_records" ("platform_id", "stack_id", "created_at", "id");
CREATE INDEX "dns_records_by_platform_id_stack_id_created_at_if_status" ON "dns_records" ("platform_id", "stack_id", "created_at", "id") WHERE "status" IN ('pending', 'active', 'failed');
CREATE INDEX "dns_records_by_resource_id_created_at_if_status" ON "dns_records" ("resource_id", "created_at", "id") WHERE "status" IN ('pending', 'active', 'failed');
CREATE INDEX "dns_records_by_hostname_created_at" ON "dns_records" ("hostname", "created_at", "id");
CREATE INDEX "dns_records_by_created_at_if_status" ON "dns_records" ("created_at", "id") WHERE "status" = 'active';

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
    "is_vouched" INTEGER NOT NULL CHECK ("is_vouched" IN (0, 1)),
    "proof_missing_since" INTEGER,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "custom_domains_entered" ON "custom_domains" ("platform_id", "hostname") WHERE "status" IN ('pending', 'verifying', 'active', 'failed');
CREATE UNIQUE INDEX "custom_domains_hostname" ON "custom_domains" ("hostname") WHERE "status" = 'active';
CREATE INDEX "custom_domains_by_platform_id_created_at" ON "custom_domains" ("platform_id", "created_at", "id");
CREATE INDEX "custom_domains_by_platform_id_created_at_if_status" ON "custom_domains" ("platform_id", "created_at", "id") WHERE "status" IN ('pending', 'verifying', 'active', 'failed');
CREATE INDEX "custom_domains_by_dns_record_id_created_at_if_status" ON "custom_domains" ("dns_record_id", "created_at", "id") WHERE "status" IN ('pending', 'verifying', 'active', 'failed');
CREATE INDEX "custom_domains_by_created_at_if_status" ON "custom_domains" ("created_at", "id") WHERE "status" IN ('pending', 'verifying');
CREATE INDEX "custom_domains_by_hostname_created_at" ON "custom_domains" ("hostname", "created_at", "id");
CREATE INDEX "custom_domains_by_created_at_if_status_2" ON "custom_domains" ("created_at", "id") WHERE "status" = 'active';

CREATE TABLE "deployments" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "idempotency_key" TEXT NOT NULL,
    "platform_id" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "cf_deployment_id" TEXT,
    "project_name" TEXT NOT NULL,
    "branch" TEXT NOT NULL,
    "url" TEXT,
    "error_message" TEXT,
    "status" TEXT NOT NULL,
    "file_count" INTEGER,
    "total_bytes" INTEGER,
    "started_at" INTEGER,
    "completed_at" INTEGER,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "content_hash" TEXT,
    "job_id" TEXT,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "deployments_idempotency_key" ON "deployments" ("platform_id", "idempotency_key", "user_id");
CREATE INDEX "deployments_by_platform_id_created_at" ON "deployments" ("platform_id", "created_at", "id");
CREATE INDEX "deployments_by_platform_id_created_at_if_status" ON "deployments" ("platform_id", "created_at", "id") WHERE "status" IN ('queued', 'uploading', 'deploying');
CREATE INDEX "deployments_by_platform_id_branch_created_at" ON "deployments" ("platform_id", "branch", "created_at", "id");
CREATE INDEX "deployments_by_job_id_created_at" ON "deployments" ("job_id", "created_at", "id");

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
    "version_id" TEXT,
    "environment" TEXT,
    "provision_job_id" TEXT,
    "default_of" TEXT,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "workspace_stacks_name" ON "workspace_stacks" ("tenant_id", "name");
CREATE UNIQUE INDEX "workspace_stacks_default" ON "workspace_stacks" ("default_of") WHERE "default_of" IS NOT NULL;
CREATE INDEX "workspace_stacks_by_platform_id_created_at" ON "workspace_stacks" ("platform_id", "created_at", "id");
CREATE INDEX "workspace_stacks_by_platform_id_tenant_id_created_at" ON "workspace_stacks" ("platform_id", "tenant_id", "created_at", "id");
CREATE INDEX "workspace_stacks_by_platform_id_tenant_id_template_id__7cd74541" ON "workspace_stacks" ("platform_id", "tenant_id", "template_id", "environment", "created_at", "id");

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

CREATE TABLE "onboardings" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "requested_by" TEXT NOT NULL,
    "requested_id" TEXT,
    "platform_name" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "tier" TEXT NOT NULL,
    "platform_tier" TEXT NOT NULL,
    "stack_template_id" TEXT,
    "billing_email" TEXT,
    "user_id" TEXT,
    "session_id" TEXT,
    "platform_id" TEXT NOT NULL,
    "job_id" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "onboardings_slug" ON "onboardings" ("slug") WHERE "status" = 'open';
CREATE UNIQUE INDEX "onboardings_requested_id" ON "onboardings" ("requested_by", "requested_id");
CREATE INDEX "onboardings_by_requested_id" ON "onboardings" ("requested_id", "id");
CREATE INDEX "onboardings_by_user_id_created_at" ON "onboardings" ("user_id", "created_at", "id");

CREATE TABLE "stack_templates" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "name" TEXT NOT NULL,
    "display_name" TEXT NOT NULL,
    "description" TEXT NOT NULL,
    "icon" TEXT,
    "domain" TEXT,
    "latest_version" TEXT,
    "status" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "stack_templates_name" ON "stack_templates" ("name");
CREATE INDEX "stack_templates_by_created_at" ON "stack_templates" ("created_at", "id");

CREATE TABLE "stack_versions" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "template_id" TEXT NOT NULL,
    "version" TEXT NOT NULL,
    "stack_definition" TEXT NOT NULL,
    "digest" TEXT NOT NULL,
    "core_sdk_version" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "published_at" INTEGER NOT NULL,
    "created_at" INTEGER NOT NULL,
    "precedence" TEXT NOT NULL,
    "pre_release" INTEGER NOT NULL CHECK ("pre_release" IN (0, 1)),
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "stack_versions_version" ON "stack_versions" ("template_id", "precedence");
CREATE INDEX "stack_versions_by_template_id_precedence" ON "stack_versions" ("template_id", "precedence", "id");
