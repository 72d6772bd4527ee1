CREATE INDEX "job_holds_by_created_at" ON "job_holds" ("created_at", "id");

CREATE INDEX "dlq_entries_by_platform_id_created_at" ON "dlq_entries" ("platform_id", "created_at", "id");
CREATE INDEX "dlq_entries_by_kind_created_at" ON "dlq_entries" ("kind", "created_at", "id");

CREATE INDEX "resources_by_platform_id_stack_id_created_at" ON "resources" ("platform_id", "stack_id", "created_at", "id", "deleted_at");

ALTER TABLE "feature_activations" ADD COLUMN "stack_id" TEXT COLLATE "C";

ALTER TABLE "workspace_stacks" ADD COLUMN "version_id" TEXT COLLATE "C";
ALTER TABLE "workspace_stacks" ADD COLUMN "environment" TEXT COLLATE "C";
ALTER TABLE "workspace_stacks" ADD COLUMN "provision_job_id" TEXT COLLATE "C";
CREATE INDEX "workspace_stacks_by_platform_id_tenant_id_template_id__7cd74541" ON "workspace_stacks" ("platform_id", "tenant_id", "template_id", "environment", "created_at", "id");
