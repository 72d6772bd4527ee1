CREATE TABLE "platforms" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "name" TEXT COLLATE "C" NOT NULL,
    "slug" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "tier" TEXT COLLATE "C" NOT NULL,
    "cf_account_id" TEXT COLLATE "C",
    "repo_name" TEXT COLLATE "C",
    "payment_customer_id" TEXT COLLATE "C",
    "owner_user_id" TEXT COLLATE "C",
    "organization_id" TEXT COLLATE "C",
    "cancelled_at" BIGINT,
    "cancellation_reason" TEXT COLLATE "C",
    "suspended_at" BIGINT,
    "suspension_reason" TEXT COLLATE "C",
    "trial_ends_at" BIGINT,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "deleted_at" BIGINT,
    "purging" BOOLEAN NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "platforms_slug" ON "platforms" ("slug") WHERE "deleted_at" IS NULL;
CREATE INDEX "platforms_by_created_at" ON "platforms" ("created_at", "id");
CREATE INDEX "platforms_by_organization_id_created_at" ON "platforms" ("organization_id", "created_at", "id");

CREATE TABLE "lifecycle_records" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "from_status" TEXT COLLATE "C",
    "to_status" TEXT COLLATE "C" NOT NULL,
    "triggered_by" TEXT COLLATE "C" NOT NULL,
    "trigger_type" TEXT COLLATE "C" NOT NULL,
    "reason" TEXT COLLATE "C",
    "metadata" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "lifecycle_records_by_platform_id_created_at" ON "lifecycle_records" ("platform_id", "created_at", "id");

CREATE TABLE "entities" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "parent_id" TEXT COLLATE "C",
    "depth" BIGINT NOT NULL,
    "entity_type" TEXT COLLATE "C" NOT NULL,
    "name" TEXT COLLATE "C" NOT NULL,
    "slug" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "deleted_at" BIGINT,
    "siblings" TEXT COLLATE "C" NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "entities_slug" ON "entities" ("platform_id", "siblings", "slug") WHERE "deleted_at" IS NULL;
CREATE INDEX "entities_by_platform_id_created_at" ON "entities" ("platform_id", "created_at", "id");
CREATE INDEX "entities_by_parent_id_created_at" ON "entities" ("parent_id", "created_at", "id");

CREATE TABLE "resources" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "entity_id" TEXT COLLATE "C" NOT NULL,
    "stack_id" TEXT COLLATE "C",
    "service_name" TEXT COLLATE "C" NOT NULL,
    "resource_type" TEXT COLLATE "C" NOT NULL,
    "environment" TEXT COLLATE "C" NOT NULL,
    "cf_name" TEXT COLLATE "C" NOT NULL,
    "cf_id" TEXT COLLATE "C",
    "cf_url" TEXT COLLATE "C",
    "status" TEXT COLLATE "C" NOT NULL,
    "provision_job_id" TEXT COLLATE "C",
    "config" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "deleted_at" BIGINT,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "resources_cf_name" ON "resources" ("platform_id", "resource_type", "environment", "cf_name") WHERE "deleted_at" IS NULL;
CREATE INDEX "resources_by_platform_id_created_at" ON "resources" ("platform_id", "created_at", "id");
CREATE INDEX "resources_by_entity_id_created_at" ON "resources" ("entity_id", "created_at", "id");
CREATE INDEX "resources_by_cf_name" ON "resources" ("cf_name", "id");

CREATE TABLE "deployments" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "idempotency_key" TEXT COLLATE "C" NOT NULL,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "user_id" TEXT COLLATE "C" NOT NULL,
    "cf_deployment_id" TEXT COLLATE "C",
    "project_name" TEXT COLLATE "C" NOT NULL,
    "branch" TEXT COLLATE "C" NOT NULL,
    "url" TEXT COLLATE "C",
    "error_message" TEXT COLLATE "C",
    "status" TEXT COLLATE "C" NOT NULL,
    "file_count" BIGINT,
    "total_bytes" BIGINT,
    "started_at" BIGINT,
    "completed_at" BIGINT,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "content_hash" TEXT COLLATE "C",
    "job_id" TEXT COLLATE "C",
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "deployments_idempotency_key" ON "deployments" ("platform_id", "idempotency_key");
CREATE INDEX "deployments_by_platform_id_created_at" ON "deployments" ("platform_id", "created_at", "id");
CREATE INDEX "deployments_by_platform_id_branch_created_at" ON "deployments" ("platform_id", "branch", "created_at", "id");
CREATE INDEX "deployments_by_platform_id_status_created_at" ON "deployments" ("platform_id", "status", "created_at", "id");

CREATE TABLE "onboardings" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_name" TEXT COLLATE "C" NOT NULL,
    "slug" TEXT COLLATE "C" NOT NULL,
    "tier" TEXT COLLATE "C" NOT NULL,
    "stack_template_id" TEXT COLLATE "C",
    "billing_email" TEXT COLLATE "C",
    "user_id" TEXT COLLATE "C",
    "session_id" TEXT COLLATE "C",
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "job_id" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "onboardings_slug" ON "onboardings" ("slug") WHERE "status" = 'open';
