-- release 0.2.0
-- outside a transaction

CREATE INDEX CONCURRENTLY IF NOT EXISTS "jobs_by_region" ON "jobs" ("region", "id");
CREATE INDEX CONCURRENTLY IF NOT EXISTS "entities_by_weight" ON "entities" ("weight", "id");
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_actor_id_if_stream";
