-- release 0.1.0
-- outside a transaction

CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_entries_by_stream" ON "audit_entries" ("stream", "id");
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_entries_by_platform_id_if_stream" ON "audit_entries" ("platform_id", "id") WHERE "stream" = 'changes';
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_entries_by_action_if_stream" ON "audit_entries" ("action", "id") WHERE "stream" = 'changes';
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_entries_by_entity_type_if_stream" ON "audit_entries" ("entity_type", "id") WHERE "stream" = 'changes';
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_entries_by_actor_id_if_stream" ON "audit_entries" ("actor_id", "id") WHERE "stream" = 'changes';
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_entries_by_platform_id_action_if_stream" ON "audit_entries" ("platform_id", "action", "id") WHERE "stream" = 'changes';
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_entries_by_platform_id_entity_type_if_stream" ON "audit_entries" ("platform_id", "entity_type", "id") WHERE "stream" = 'changes';
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_entries_by_platform_id_entity_id_if_stream" ON "audit_entries" ("platform_id", "entity_id", "id") WHERE "stream" = 'changes';
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_entries_by_platform_id_actor_id_if_stream" ON "audit_entries" ("platform_id", "actor_id", "id") WHERE "stream" = 'changes';
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_entries_by_platform_id_if_stream_2" ON "audit_entries" ("platform_id", "id") WHERE "stream" = 'reads';
CREATE INDEX CONCURRENTLY IF NOT EXISTS "audit_entries_by_stream_if_platform_id" ON "audit_entries" ("stream", "id") WHERE "platform_id" IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_action_created_at_if_stream";
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_actor_id_action_created_at_if_stream";
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_actor_id_created_at_if_stream";
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_actor_id_entity_type_created_at_if_stream";
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_created_at_if_stream";
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_created_at_if_stream_if_platform_id";
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_created_at_if_stream_if_platform_id_2";
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_entity_type_created_at_if_stream";
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_platform_id_action_created_at_if_stream";
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_platform_id_actor_id_action_created_a_955caf10";
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_platform_id_actor_id_created_at_if_stream";
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_platform_id_actor_id_entity_type_crea_3db83085";
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_platform_id_created_at_if_stream";
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_platform_id_created_at_if_stream_2";
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_platform_id_entity_id_created_at_if_stream";
DROP INDEX CONCURRENTLY IF EXISTS "audit_entries_by_platform_id_entity_type_created_at_if_stream";
CREATE INDEX CONCURRENTLY IF NOT EXISTS "unsealed_audit_entries_by_stream" ON "unsealed_audit_entries" ("stream", "id");
DROP INDEX CONCURRENTLY IF EXISTS "unsealed_audit_entries_by_stream_created_at";
