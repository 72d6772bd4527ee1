ALTER TABLE "resources" ADD COLUMN "feature_activation_id" TEXT COLLATE "C";
ALTER TABLE "resources" ADD COLUMN "removal_job_id" TEXT COLLATE "C";
CREATE INDEX "resources_by_platform_id_feature_activation_id_created_4b48b2d9" ON "resources" ("platform_id", "feature_activation_id", "created_at", "id", "deleted_at") WHERE "feature_activation_id" IS NOT NULL;
CREATE INDEX "resources_by_platform_id_removal_job_id_created_at_if__bbe7aabd" ON "resources" ("platform_id", "removal_job_id", "created_at", "id") WHERE "removal_job_id" IS NOT NULL;
