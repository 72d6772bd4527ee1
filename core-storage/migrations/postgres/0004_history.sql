-- release 0.1.0
-- outside a transaction

CREATE INDEX CONCURRENTLY IF NOT EXISTS "lifecycle_records_by_created_at" ON "lifecycle_records" ("created_at", "id");
CREATE INDEX CONCURRENTLY IF NOT EXISTS "builds_by_created_at" ON "builds" ("created_at", "id");
CREATE INDEX CONCURRENTLY IF NOT EXISTS "deployments_by_created_at" ON "deployments" ("created_at", "id");
CREATE INDEX CONCURRENTLY IF NOT EXISTS "deployments_by_source_id_if_source_id" ON "deployments" ("source_id", "id") WHERE "source_id" IS NOT NULL;
