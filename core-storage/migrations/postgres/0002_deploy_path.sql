ALTER TABLE "feature_activations" ADD COLUMN "config" TEXT COLLATE "C";

ALTER TABLE "deployments" ADD COLUMN "message" TEXT COLLATE "C";
ALTER TABLE "deployments" ADD COLUMN "permalink" TEXT COLLATE "C";
ALTER TABLE "deployments" ADD COLUMN "source_id" TEXT COLLATE "C";
ALTER TABLE "deployments" ADD COLUMN "pinned_at" BIGINT;
CREATE UNIQUE INDEX "deployments_pinned" ON "deployments" ("platform_id") WHERE "pinned_at" IS NOT NULL;
CREATE INDEX "deployments_by_platform_id_status_created_at" ON "deployments" ("platform_id", "status", "created_at", "id");
CREATE INDEX "deployments_by_platform_id_branch_status_created_at" ON "deployments" ("platform_id", "branch", "status", "created_at", "id");
CREATE INDEX "deployments_by_updated_at_if_status_if_job_id" ON "deployments" ("updated_at", "id") WHERE "status" IN ('queued', 'uploading', 'deploying') AND "job_id" IS NULL;

CREATE TABLE "deploy_plans" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "actor_id" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "deploy_plans_by_platform_id_expires_at" ON "deploy_plans" ("platform_id", "expires_at", "id");
CREATE INDEX "deploy_plans_by_expires_at" ON "deploy_plans" ("expires_at", "id");
