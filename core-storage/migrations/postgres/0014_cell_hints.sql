-- release 0.1.0

ALTER TABLE "cell_platforms" ADD COLUMN "organization_id" TEXT COLLATE "C";

ALTER TABLE "cell_unique_values" ADD COLUMN "platform_id" TEXT COLLATE "C";
