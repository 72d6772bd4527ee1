CREATE INDEX "outbox_messages_by_run_at_if_topic" ON "outbox_messages" ("run_at", "id") WHERE "topic" = 'mail';

ALTER TABLE "users" ADD COLUMN "banned_at" BIGINT;
ALTER TABLE "users" ADD COLUMN "ban_reason" TEXT COLLATE "C";

ALTER TABLE "sessions" ADD COLUMN "client_id" TEXT COLLATE "C";
ALTER TABLE "sessions" ADD COLUMN "authenticated_at" BIGINT;

ALTER TABLE "organizations" ADD COLUMN "logo" TEXT COLLATE "C";
ALTER TABLE "organizations" ADD COLUMN "metadata" TEXT COLLATE "C";
ALTER TABLE "organizations" ADD COLUMN "roles" TEXT COLLATE "C";

ALTER TABLE "members" ADD COLUMN "grants" TEXT COLLATE "C";
CREATE INDEX "members_by_organization_id_created_at" ON "members" ("organization_id", "created_at", "id");

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
CREATE INDEX "verifications_by_email_purpose_created_at" ON "verifications" ("email", "purpose", "created_at", "id");
CREATE INDEX "verifications_by_expires_at" ON "verifications" ("expires_at", "id");

CREATE TABLE "invitations" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "organization_id" TEXT COLLATE "C" NOT NULL,
    "email" TEXT COLLATE "C" NOT NULL,
    "role" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
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

CREATE TABLE "api_keys" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "user_id" TEXT COLLATE "C",
    "organization_id" TEXT COLLATE "C" NOT NULL,
    "platform_id" TEXT COLLATE "C" NOT NULL,
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
