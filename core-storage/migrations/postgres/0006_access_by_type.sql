ALTER TABLE "audit_entries" ADD COLUMN "stream" TEXT COLLATE "C" NOT NULL DEFAULT 'changes';
ALTER TABLE "audit_entries" ALTER COLUMN "stream" DROP DEFAULT;

ALTER TABLE "idempotency_keys" ADD COLUMN "headers" TEXT COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE "idempotency_keys" ALTER COLUMN "headers" DROP DEFAULT;

ALTER TABLE "platform_suspensions" ADD COLUMN "by_operator" BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE "platform_suspensions" ALTER COLUMN "by_operator" DROP DEFAULT;

CREATE INDEX "jobs_by_parent_job_id" ON "jobs" ("parent_job_id", "id");

DROP INDEX "resources_cf_name";
ALTER TABLE "resources" ADD COLUMN "cf_account_id" TEXT COLLATE "C";
ALTER TABLE "resources" ADD COLUMN "account" TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE "resources" ALTER COLUMN "account" DROP DEFAULT;
CREATE UNIQUE INDEX "resources_name" ON "resources" ("account", "resource_type", "cf_name") WHERE "deleted_at" IS NULL;

CREATE INDEX "deployments_by_job_id_created_at" ON "deployments" ("job_id", "created_at", "id");

ALTER TABLE "onboardings" ADD COLUMN "requested_by" TEXT COLLATE "C" NOT NULL DEFAULT 'system';
ALTER TABLE "onboardings" ALTER COLUMN "requested_by" DROP DEFAULT;
ALTER TABLE "onboardings" ADD COLUMN "requested_id" TEXT COLLATE "C";
ALTER TABLE "onboardings" ADD COLUMN "platform_tier" TEXT COLLATE "C" NOT NULL DEFAULT 'starter';
ALTER TABLE "onboardings" ALTER COLUMN "platform_tier" DROP DEFAULT;
CREATE UNIQUE INDEX "onboardings_requested_id" ON "onboardings" ("requested_by", "requested_id");
CREATE INDEX "onboardings_by_requested_id" ON "onboardings" ("requested_id", "id");
