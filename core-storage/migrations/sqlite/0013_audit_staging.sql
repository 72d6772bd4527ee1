CREATE TABLE "unsealed_audit_entries" (
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
CREATE INDEX "unsealed_audit_entries_by_stream_created_at" ON "unsealed_audit_entries" ("stream", "created_at", "id");
INSERT INTO "unsealed_audit_entries" ("id", "stream", "platform_id", "actor_id", "actor_type", "action", "entity_type", "entity_id", "before", "after", "metadata", "created_at", "row_version") SELECT "id", "stream", "platform_id", "actor_id", "actor_type", "action", "entity_type", "entity_id", "before", "after", "metadata", "created_at", "row_version" FROM "audit_entries" WHERE "id" IN (SELECT "id" FROM "unsealed_entries");
DELETE FROM "audit_entries" WHERE "id" IN (SELECT "id" FROM "unsealed_entries");
DROP TABLE "unsealed_entries";
DROP TRIGGER IF EXISTS "audit_entries_refuses_update";
DROP TRIGGER IF EXISTS "audit_entries_refuses_delete";
CREATE TRIGGER "audit_entries_refuses_update" BEFORE UPDATE ON "audit_entries" BEGIN SELECT RAISE(ABORT, 'rows of audit_entries are never changed or deleted'); END;
CREATE TRIGGER "audit_entries_refuses_delete" BEFORE DELETE ON "audit_entries" BEGIN SELECT RAISE(ABORT, 'rows of audit_entries are never changed or deleted'); END;

DROP TRIGGER IF EXISTS "audit_seals_refuses_update";
DROP TRIGGER IF EXISTS "audit_seals_refuses_delete";
CREATE TRIGGER "audit_seals_refuses_update" BEFORE UPDATE ON "audit_seals" BEGIN SELECT RAISE(ABORT, 'rows of audit_seals are never changed or deleted'); END;
CREATE TRIGGER "audit_seals_refuses_delete" BEFORE DELETE ON "audit_seals" BEGIN SELECT RAISE(ABORT, 'rows of audit_seals are never changed or deleted'); END;

DROP TRIGGER IF EXISTS "audit_checkpoints_refuses_update";
DROP TRIGGER IF EXISTS "audit_checkpoints_refuses_delete";
CREATE TRIGGER "audit_checkpoints_refuses_update" BEFORE UPDATE ON "audit_checkpoints" BEGIN SELECT RAISE(ABORT, 'rows of audit_checkpoints are never changed or deleted'); END;
CREATE TRIGGER "audit_checkpoints_refuses_delete" BEFORE DELETE ON "audit_checkpoints" BEGIN SELECT RAISE(ABORT, 'rows of audit_checkpoints are never changed or deleted'); END;
