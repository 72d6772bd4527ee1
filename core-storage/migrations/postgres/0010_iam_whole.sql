CREATE INDEX "outbox_messages_by_run_at_if_topic" ON "outbox_messages" ("run_at", "id") WHERE "topic" = 'mail';

ALTER TABLE "users" ADD COLUMN "banned_at" BIGINT;
ALTER TABLE "users" ADD COLUMN "ban_reason" TEXT COLLATE "C";

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
