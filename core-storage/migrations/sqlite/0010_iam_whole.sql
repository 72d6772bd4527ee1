CREATE INDEX "outbox_messages_by_run_at_if_topic" ON "outbox_messages" ("run_at", "id") WHERE "topic" = 'mail';

ALTER TABLE "users" ADD COLUMN "banned_at" INTEGER;
ALTER TABLE "users" ADD COLUMN "ban_reason" TEXT;

ALTER TABLE "sessions" ADD COLUMN "client_id" TEXT;
ALTER TABLE "sessions" ADD COLUMN "authenticated_at" INTEGER;

ALTER TABLE "organizations" ADD COLUMN "logo" TEXT;
ALTER TABLE "organizations" ADD COLUMN "metadata" TEXT;
ALTER TABLE "organizations" ADD COLUMN "roles" TEXT;

ALTER TABLE "members" ADD COLUMN "grants" TEXT;
CREATE INDEX "members_by_organization_id_created_at" ON "members" ("organization_id", "created_at", "id");

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
CREATE INDEX "verifications_by_email_purpose_created_at" ON "verifications" ("email", "purpose", "created_at", "id");
CREATE INDEX "verifications_by_expires_at" ON "verifications" ("expires_at", "id");

CREATE TABLE "invitations" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "organization_id" TEXT NOT NULL,
    "email" TEXT NOT NULL,
    "role" TEXT NOT NULL,
    "status" TEXT NOT NULL,
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

CREATE TABLE "api_keys" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT,
    "organization_id" TEXT NOT NULL,
    "platform_id" TEXT NOT NULL,
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
