ALTER TABLE "accounts" ADD COLUMN "set_by_link_at" INTEGER;

ALTER TABLE "sessions" ADD COLUMN "second_factor_at" INTEGER;

DROP INDEX "verifications_by_email_purpose_created_at";

ALTER TABLE "trusted_devices" ADD COLUMN "ip_address" TEXT;
ALTER TABLE "trusted_devices" ADD COLUMN "user_agent" TEXT;

CREATE TABLE "mail_quotas" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "sent_at" TEXT NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "mail_quotas_by_expires_at" ON "mail_quotas" ("expires_at", "id");
