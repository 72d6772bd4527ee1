CREATE TABLE "new_audit_entries" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "stream" TEXT NOT NULL,
    "platform_id" TEXT,
    "actor_id" TEXT NOT NULL,
    "actor_type" TEXT NOT NULL,
    "action" TEXT NOT NULL,
    "entity_type" TEXT NOT NULL,
    "entity_id" TEXT NOT NULL,
    "before" TEXT,
    "after" TEXT,
    "metadata" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
INSERT INTO "new_audit_entries" ("id", "stream", "platform_id", "actor_id", "actor_type", "action", "entity_type", "entity_id", "before", "after", "metadata", "created_at", "row_version")
    SELECT "id", 'changes', "platform_id", "actor_id", "actor_type", "action", "entity_type", "entity_id", "before", "after", "metadata", "created_at", "row_version"
    FROM "audit_entries";
DROP TABLE "audit_entries";
ALTER TABLE "new_audit_entries" RENAME TO "audit_entries";
CREATE INDEX "audit_entries_by_created_at" ON "audit_entries" ("created_at", "id");
CREATE INDEX "audit_entries_by_platform_id_created_at" ON "audit_entries" ("platform_id", "created_at", "id");
CREATE INDEX "audit_entries_by_actor_id_created_at" ON "audit_entries" ("actor_id", "created_at", "id");
CREATE INDEX "audit_entries_by_entity_id_created_at" ON "audit_entries" ("entity_id", "created_at", "id");

CREATE TABLE "new_idempotency_keys" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "request_hash" TEXT NOT NULL,
    "status" INTEGER NOT NULL,
    "headers" TEXT NOT NULL,
    "body" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
INSERT INTO "new_idempotency_keys" ("id", "request_hash", "status", "headers", "body", "created_at", "expires_at", "row_version")
    SELECT "id", "request_hash", "status", '[]', "body", "created_at", "expires_at", "row_version"
    FROM "idempotency_keys";
DROP TABLE "idempotency_keys";
ALTER TABLE "new_idempotency_keys" RENAME TO "idempotency_keys";
CREATE INDEX "idempotency_keys_by_expires_at" ON "idempotency_keys" ("expires_at", "id");

CREATE TABLE "new_platform_suspensions" (
    "platform_id" TEXT NOT NULL PRIMARY KEY,
    "reason" TEXT,
    "by_operator" INTEGER NOT NULL CHECK ("by_operator" IN (0, 1)),
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
INSERT INTO "new_platform_suspensions" ("platform_id", "reason", "by_operator", "created_at", "row_version")
    SELECT "platform_id", "reason", 1, "created_at", "row_version"
    FROM "platform_suspensions";
DROP TABLE "platform_suspensions";
ALTER TABLE "new_platform_suspensions" RENAME TO "platform_suspensions";

CREATE INDEX "jobs_by_parent_job_id" ON "jobs" ("parent_job_id", "id");

CREATE TABLE "new_resources" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "entity_id" TEXT NOT NULL,
    "stack_id" TEXT,
    "service_name" TEXT NOT NULL,
    "resource_type" TEXT NOT NULL,
    "environment" TEXT NOT NULL,
    "cf_name" TEXT NOT NULL,
    "cf_account_id" TEXT,
    "cf_id" TEXT,
    "cf_url" TEXT,
    "status" TEXT NOT NULL,
    "provision_job_id" TEXT,
    "config" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "deleted_at" INTEGER,
    "account" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
INSERT INTO "new_resources" ("id", "platform_id", "entity_id", "stack_id", "service_name", "resource_type", "environment", "cf_name", "cf_account_id", "cf_id", "cf_url", "status", "provision_job_id", "config", "created_at", "updated_at", "deleted_at", "account", "row_version")
    SELECT "id", "platform_id", "entity_id", "stack_id", "service_name", "resource_type", "environment", "cf_name", NULL, "cf_id", "cf_url", "status", "provision_job_id", "config", "created_at", "updated_at", "deleted_at", '', "row_version"
    FROM "resources";
DROP TABLE "resources";
ALTER TABLE "new_resources" RENAME TO "resources";
CREATE UNIQUE INDEX "resources_name" ON "resources" ("account", "resource_type", "cf_name") WHERE "deleted_at" IS NULL;
CREATE INDEX "resources_by_platform_id_created_at" ON "resources" ("platform_id", "created_at", "id");
CREATE INDEX "resources_by_entity_id_created_at" ON "resources" ("entity_id", "created_at", "id");
CREATE INDEX "resources_by_cf_name" ON "resources" ("cf_name", "id");

CREATE INDEX "deployments_by_job_id_created_at" ON "deployments" ("job_id", "created_at", "id");

CREATE TABLE "new_onboardings" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "requested_by" TEXT NOT NULL,
    "requested_id" TEXT,
    "platform_name" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "tier" TEXT NOT NULL,
    "platform_tier" TEXT NOT NULL,
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
INSERT INTO "new_onboardings" ("id", "requested_by", "requested_id", "platform_name", "slug", "tier", "platform_tier", "stack_template_id", "billing_email", "user_id", "session_id", "platform_id", "job_id", "status", "created_at", "updated_at", "row_version")
    SELECT "id", 'system', NULL, "platform_name", "slug", "tier", 'starter', "stack_template_id", "billing_email", "user_id", "session_id", "platform_id", "job_id", "status", "created_at", "updated_at", "row_version"
    FROM "onboardings";
DROP TABLE "onboardings";
ALTER TABLE "new_onboardings" RENAME TO "onboardings";
CREATE UNIQUE INDEX "onboardings_slug" ON "onboardings" ("slug") WHERE "status" = 'open';
CREATE UNIQUE INDEX "onboardings_requested_id" ON "onboardings" ("requested_by", "requested_id");
CREATE INDEX "onboardings_by_requested_id" ON "onboardings" ("requested_id", "id");
