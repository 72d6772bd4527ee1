ALTER TABLE "idempotency_keys" ADD COLUMN "needs_proof" BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE "idempotency_keys" ALTER COLUMN "needs_proof" DROP DEFAULT;

ALTER TABLE "accounts" ADD COLUMN "set_by_link_at" BIGINT;

ALTER TABLE "sessions" ADD COLUMN "second_factor_at" BIGINT;

DROP INDEX "verifications_by_email_purpose_created_at";

ALTER TABLE "invitations" ADD COLUMN "secret_hash" TEXT COLLATE "C";

ALTER TABLE "trusted_devices" ADD COLUMN "ip_address" TEXT COLLATE "C";
ALTER TABLE "trusted_devices" ADD COLUMN "user_agent" TEXT COLLATE "C";

DROP INDEX "deployments_idempotency_key";
CREATE UNIQUE INDEX "deployments_idempotency_key" ON "deployments" ("platform_id", "idempotency_key", "user_id");

CREATE INDEX "onboardings_by_user_id_created_at" ON "onboardings" ("user_id", "created_at", "id");

CREATE INDEX "stack_versions_by_template_id_precedence" ON "stack_versions" ("template_id", "precedence", "id");

CREATE TABLE "mail_quotas" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "sent_at" TEXT COLLATE "C" NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "mail_quotas_by_expires_at" ON "mail_quotas" ("expires_at", "id");
