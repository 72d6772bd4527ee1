ALTER TABLE "organizations" ADD COLUMN "logo" TEXT;
ALTER TABLE "organizations" ADD COLUMN "metadata" TEXT;
ALTER TABLE "organizations" ADD COLUMN "roles" TEXT;

ALTER TABLE "members" ADD COLUMN "grants" TEXT;
CREATE INDEX "members_by_organization_id_created_at" ON "members" ("organization_id", "created_at", "id");
