CREATE TABLE "audit_entries" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C",
    "actor_id" TEXT COLLATE "C" NOT NULL,
    "actor_type" TEXT COLLATE "C" NOT NULL,
    "action" TEXT COLLATE "C" NOT NULL,
    "entity_type" TEXT COLLATE "C" NOT NULL,
    "entity_id" TEXT COLLATE "C" NOT NULL,
    "before" TEXT COLLATE "C",
    "after" TEXT COLLATE "C",
    "metadata" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "audit_entries_by_created_at" ON "audit_entries" ("created_at", "id");
CREATE INDEX "audit_entries_by_platform_id_created_at" ON "audit_entries" ("platform_id", "created_at", "id");
CREATE INDEX "audit_entries_by_actor_id_created_at" ON "audit_entries" ("actor_id", "created_at", "id");
CREATE INDEX "audit_entries_by_entity_id_created_at" ON "audit_entries" ("entity_id", "created_at", "id");

CREATE TABLE "outbox_messages" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "topic" TEXT COLLATE "C" NOT NULL,
    "payload" TEXT COLLATE "C" NOT NULL,
    "attempts" BIGINT NOT NULL,
    "run_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "outbox_messages_by_run_at" ON "outbox_messages" ("run_at", "id");

CREATE TABLE "idempotency_keys" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "request_hash" TEXT COLLATE "C" NOT NULL,
    "status" BIGINT NOT NULL,
    "body" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "idempotency_keys_by_expires_at" ON "idempotency_keys" ("expires_at", "id");
