-- release 0.1.0

ALTER TABLE "cell_platforms" ADD COLUMN "organization_id" TEXT;
CREATE INDEX "cell_platforms_by_organization_id_cell" ON "cell_platforms" ("organization_id", "cell", "platform_id");

ALTER TABLE "cell_unique_values" ADD COLUMN "platform_id" TEXT;
