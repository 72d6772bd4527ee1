CREATE TABLE "new_idempotency_keys" (
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
INSERT INTO "new_idempotency_keys" ("id", "request_hash", "status", "headers", "body", "needs_proof", "created_at", "expires_at", "row_version")
    SELECT "id", "request_hash", "status", "headers", "body", 0, "created_at", "expires_at", "row_version"
    FROM "idempotency_keys";
DROP TABLE "idempotency_keys";
ALTER TABLE "new_idempotency_keys" RENAME TO "idempotency_keys";
CREATE INDEX "idempotency_keys_by_expires_at" ON "idempotency_keys" ("expires_at", "id");

ALTER TABLE "accounts" ADD COLUMN "set_by_link_at" INTEGER;

ALTER TABLE "sessions" ADD COLUMN "second_factor_at" INTEGER;

DROP INDEX "verifications_by_email_purpose_created_at";

ALTER TABLE "invitations" ADD COLUMN "secret_hash" TEXT;

ALTER TABLE "trusted_devices" ADD COLUMN "ip_address" TEXT;
ALTER TABLE "trusted_devices" ADD COLUMN "user_agent" TEXT;

DROP INDEX "deployments_idempotency_key";
CREATE UNIQUE INDEX "deployments_idempotency_key" ON "deployments" ("platform_id", "idempotency_key", "user_id");

CREATE INDEX "onboardings_by_user_id_created_at" ON "onboardings" ("user_id", "created_at", "id");

CREATE INDEX "stack_versions_by_template_id_precedence" ON "stack_versions" ("template_id", "precedence", "id");

CREATE TABLE "mail_quotas" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "sent_at" TEXT NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "mail_quotas_by_expires_at" ON "mail_quotas" ("expires_at", "id");
