ALTER TABLE "invitations" ADD COLUMN "secret_hash" TEXT COLLATE "C";

CREATE INDEX "onboardings_by_user_id_created_at" ON "onboardings" ("user_id", "created_at", "id");

CREATE TABLE "mail_quotas" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "sent_at" TEXT COLLATE "C" NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "mail_quotas_by_expires_at" ON "mail_quotas" ("expires_at", "id");
