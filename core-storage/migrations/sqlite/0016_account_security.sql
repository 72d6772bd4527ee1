ALTER TABLE "invitations" ADD COLUMN "secret_hash" TEXT;

CREATE INDEX "onboardings_by_user_id_created_at" ON "onboardings" ("user_id", "created_at", "id");

CREATE TABLE "mail_quotas" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "sent_at" TEXT NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "mail_quotas_by_expires_at" ON "mail_quotas" ("expires_at", "id");
