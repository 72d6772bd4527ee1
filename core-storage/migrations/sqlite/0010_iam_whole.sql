CREATE INDEX "outbox_messages_by_run_at_if_topic" ON "outbox_messages" ("run_at", "id") WHERE "topic" = 'mail';

ALTER TABLE "users" ADD COLUMN "banned_at" INTEGER;
ALTER TABLE "users" ADD COLUMN "ban_reason" TEXT;

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
