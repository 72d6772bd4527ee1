ALTER TABLE "accounts" ADD COLUMN "set_by_link_at" BIGINT;

ALTER TABLE "sessions" ADD COLUMN "second_factor_at" BIGINT;

DROP INDEX "verifications_by_email_purpose_created_at";

ALTER TABLE "trusted_devices" ADD COLUMN "ip_address" TEXT COLLATE "C";
ALTER TABLE "trusted_devices" ADD COLUMN "user_agent" TEXT COLLATE "C";

CREATE TABLE "mail_quotas" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "sent_at" TEXT COLLATE "C" NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "mail_quotas_by_expires_at" ON "mail_quotas" ("expires_at", "id");
