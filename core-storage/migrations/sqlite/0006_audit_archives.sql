-- release 0.1.0

DROP TRIGGER IF EXISTS "audit_entries_refuses_update";
DROP TRIGGER IF EXISTS "audit_entries_refuses_delete";
CREATE TRIGGER "audit_entries_refuses_update" BEFORE UPDATE ON "audit_entries" BEGIN SELECT RAISE(ABORT, 'rows of audit_entries are never changed or deleted'); END;
CREATE TRIGGER "audit_entries_refuses_delete" BEFORE DELETE ON "audit_entries" WHEN OLD."id" >= (SELECT COALESCE(MAX("keys_before"), '') FROM "audit_archives") BEGIN SELECT RAISE(ABORT, 'rows of audit_entries are never changed or deleted before they are archived'); END;

DROP TRIGGER IF EXISTS "audit_seals_refuses_update";
DROP TRIGGER IF EXISTS "audit_seals_refuses_delete";
CREATE TRIGGER "audit_seals_refuses_update" BEFORE UPDATE ON "audit_seals" BEGIN SELECT RAISE(ABORT, 'rows of audit_seals are never changed or deleted'); END;
CREATE TRIGGER "audit_seals_refuses_delete" BEFORE DELETE ON "audit_seals" WHEN OLD."entry_id" >= (SELECT COALESCE(MAX("keys_before"), '') FROM "audit_archives") BEGIN SELECT RAISE(ABORT, 'rows of audit_seals are never changed or deleted before they are archived'); END;

ALTER TABLE "audit_heads" ADD COLUMN "removed_changes" INTEGER;

DROP TRIGGER IF EXISTS "audit_checkpoints_refuses_update";
DROP TRIGGER IF EXISTS "audit_checkpoints_refuses_delete";
ALTER TABLE "audit_checkpoints" ADD COLUMN "archived_until" INTEGER;
CREATE TRIGGER "audit_checkpoints_refuses_update" BEFORE UPDATE ON "audit_checkpoints" BEGIN SELECT RAISE(ABORT, 'rows of audit_checkpoints are never changed or deleted'); END;
CREATE TRIGGER "audit_checkpoints_refuses_delete" BEFORE DELETE ON "audit_checkpoints" WHEN OLD."id" >= (SELECT COALESCE(MAX("keys_before"), '') FROM "audit_archives") BEGIN SELECT RAISE(ABORT, 'rows of audit_checkpoints are never changed or deleted before they are archived'); END;

CREATE TABLE "audit_archives" (
    "month" TEXT NOT NULL PRIMARY KEY,
    "keys_before" TEXT NOT NULL,
    "after" INTEGER NOT NULL,
    "position" INTEGER NOT NULL,
    "feed_position" INTEGER NOT NULL,
    "feed_hash" TEXT NOT NULL,
    "digest" TEXT NOT NULL,
    "previous" TEXT NOT NULL,
    "archived_at" INTEGER NOT NULL,
    "jws" TEXT NOT NULL,
    "removed_at" INTEGER,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "audit_archives_by_keys_before" ON "audit_archives" ("keys_before", "month");
