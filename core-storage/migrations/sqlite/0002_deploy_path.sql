ALTER TABLE "feature_activations" ADD COLUMN "config" TEXT;

ALTER TABLE "deployments" ADD COLUMN "message" TEXT;
ALTER TABLE "deployments" ADD COLUMN "permalink" TEXT;
ALTER TABLE "deployments" ADD COLUMN "source_id" TEXT;
ALTER TABLE "deployments" ADD COLUMN "pinned_at" INTEGER;
CREATE UNIQUE INDEX "deployments_pinned" ON "deployments" ("platform_id") WHERE "pinned_at" IS NOT NULL;
CREATE INDEX "deployments_by_platform_id_status_created_at" ON "deployments" ("platform_id", "status", "created_at", "id");
CREATE INDEX "deployments_by_platform_id_branch_status_created_at" ON "deployments" ("platform_id", "branch", "status", "created_at", "id");
CREATE INDEX "deployments_by_updated_at_if_status_if_job_id" ON "deployments" ("updated_at", "id") WHERE "status" IN ('queued', 'uploading', 'deploying') AND "job_id" IS NULL;

CREATE TABLE "deploy_plans" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "actor_id" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "deploy_plans_by_platform_id_expires_at" ON "deploy_plans" ("platform_id", "expires_at", "id");
CREATE INDEX "deploy_plans_by_expires_at" ON "deploy_plans" ("expires_at", "id");
