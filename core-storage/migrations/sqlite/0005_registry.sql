CREATE TABLE "platforms" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "name" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "tier" TEXT NOT NULL,
    "cf_account_id" TEXT,
    "repo_name" TEXT,
    "payment_customer_id" TEXT,
    "owner_user_id" TEXT,
    "organization_id" TEXT,
    "cancelled_at" INTEGER,
    "cancellation_reason" TEXT,
    "suspended_at" INTEGER,
    "suspension_reason" TEXT,
    "trial_ends_at" INTEGER,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "deleted_at" INTEGER,
    "purging" INTEGER NOT NULL CHECK ("purging" IN (0, 1)),
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "platforms_slug" ON "platforms" ("slug") WHERE "deleted_at" IS NULL;
CREATE INDEX "platforms_by_created_at" ON "platforms" ("created_at", "id");
CREATE INDEX "platforms_by_organization_id_created_at" ON "platforms" ("organization_id", "created_at", "id");

CREATE TABLE "lifecycle_records" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "from_status" TEXT,
    "to_status" TEXT NOT NULL,
    "triggered_by" TEXT NOT NULL,
    "trigger_type" TEXT NOT NULL,
    "reason" TEXT,
    "metadata" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "lifecycle_records_by_platform_id_created_at" ON "lifecycle_records" ("platform_id", "created_at", "id");

CREATE TABLE "entities" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "parent_id" TEXT,
    "depth" INTEGER NOT NULL,
    "entity_type" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "deleted_at" INTEGER,
    "siblings" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "entities_slug" ON "entities" ("platform_id", "siblings", "slug") WHERE "deleted_at" IS NULL;
CREATE INDEX "entities_by_platform_id_created_at" ON "entities" ("platform_id", "created_at", "id");
CREATE INDEX "entities_by_parent_id_created_at" ON "entities" ("parent_id", "created_at", "id");

CREATE TABLE "resources" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "entity_id" TEXT NOT NULL,
    "stack_id" TEXT,
    "service_name" TEXT NOT NULL,
    "resource_type" TEXT NOT NULL,
    "environment" TEXT NOT NULL,
    "cf_name" TEXT NOT NULL,
    "cf_id" TEXT,
    "cf_url" TEXT,
    "status" TEXT NOT NULL,
    "provision_job_id" TEXT,
    "config" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "deleted_at" INTEGER,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "resources_cf_name" ON "resources" ("platform_id", "resource_type", "environment", "cf_name") WHERE "deleted_at" IS NULL;
CREATE INDEX "resources_by_platform_id_created_at" ON "resources" ("platform_id", "created_at", "id");
CREATE INDEX "resources_by_entity_id_created_at" ON "resources" ("entity_id", "created_at", "id");
CREATE INDEX "resources_by_cf_name" ON "resources" ("cf_name", "id");

CREATE TABLE "deployments" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "idempotency_key" TEXT NOT NULL,
    "platform_id" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "cf_deployment_id" TEXT,
    "project_name" TEXT NOT NULL,
    "branch" TEXT NOT NULL,
    "url" TEXT,
    "error_message" TEXT,
    "status" TEXT NOT NULL,
    "file_count" INTEGER,
    "total_bytes" INTEGER,
    "started_at" INTEGER,
    "completed_at" INTEGER,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "content_hash" TEXT,
    "job_id" TEXT,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "deployments_idempotency_key" ON "deployments" ("platform_id", "idempotency_key");
CREATE INDEX "deployments_by_platform_id_created_at" ON "deployments" ("platform_id", "created_at", "id");
CREATE INDEX "deployments_by_platform_id_branch_created_at" ON "deployments" ("platform_id", "branch", "created_at", "id");
CREATE INDEX "deployments_by_platform_id_status_created_at" ON "deployments" ("platform_id", "status", "created_at", "id");

CREATE TABLE "onboardings" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_name" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "tier" TEXT NOT NULL,
    "stack_template_id" TEXT,
    "billing_email" TEXT,
    "user_id" TEXT,
    "session_id" TEXT,
    "platform_id" TEXT NOT NULL,
    "job_id" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "onboardings_slug" ON "onboardings" ("slug") WHERE "status" = 'open';
