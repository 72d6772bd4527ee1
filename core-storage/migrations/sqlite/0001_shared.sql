CREATE TABLE "audit_entries" (
    "id" TEXT NOT NULL PRIMARY KEY,
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
CREATE INDEX "audit_entries_by_created_at" ON "audit_entries" ("created_at", "id");
CREATE INDEX "audit_entries_by_platform_id_created_at" ON "audit_entries" ("platform_id", "created_at", "id");
CREATE INDEX "audit_entries_by_actor_id_created_at" ON "audit_entries" ("actor_id", "created_at", "id");
CREATE INDEX "audit_entries_by_entity_id_created_at" ON "audit_entries" ("entity_id", "created_at", "id");

CREATE TABLE "outbox_messages" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "topic" TEXT NOT NULL,
    "payload" TEXT NOT NULL,
    "attempts" INTEGER NOT NULL,
    "run_at" INTEGER NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "outbox_messages_by_run_at" ON "outbox_messages" ("run_at", "id");

CREATE TABLE "idempotency_keys" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "request_hash" TEXT NOT NULL,
    "status" INTEGER NOT NULL,
    "body" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "idempotency_keys_by_expires_at" ON "idempotency_keys" ("expires_at", "id");
