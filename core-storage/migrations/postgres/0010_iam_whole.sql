ALTER TABLE "organizations" ADD COLUMN "logo" TEXT COLLATE "C";
ALTER TABLE "organizations" ADD COLUMN "metadata" TEXT COLLATE "C";
ALTER TABLE "organizations" ADD COLUMN "roles" TEXT COLLATE "C";

ALTER TABLE "members" ADD COLUMN "grants" TEXT COLLATE "C";
CREATE INDEX "members_by_organization_id_created_at" ON "members" ("organization_id", "created_at", "id");
