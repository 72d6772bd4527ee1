-- release 0.1.0

DROP TRIGGER IF EXISTS "audit_entries_refuses_delete";
CREATE TRIGGER "audit_entries_refuses_delete" BEFORE DELETE ON "audit_entries" WHEN OLD."id" >= (SELECT COALESCE(MAX("keys_before"), '') FROM "audit_archives") AND NOT EXISTS (SELECT 1 FROM "cell_hidden_platforms" WHERE "platform_id" = OLD."platform_id") BEGIN SELECT RAISE(ABORT, 'rows of audit_entries are never changed or deleted before they are archived'); END;

DROP TRIGGER IF EXISTS "audit_seals_refuses_delete";
CREATE TRIGGER "audit_seals_refuses_delete" BEFORE DELETE ON "audit_seals" WHEN OLD."entry_id" >= (SELECT COALESCE(MAX("keys_before"), '') FROM "audit_archives") AND NOT EXISTS (SELECT 1 FROM "cell_hidden_platforms" WHERE 'platform:' || "platform_id" = OLD."chain") BEGIN SELECT RAISE(ABORT, 'rows of audit_seals are never changed or deleted before they are archived'); END;

DROP TRIGGER IF EXISTS "audit_checkpoints_refuses_delete";
CREATE TRIGGER "audit_checkpoints_refuses_delete" BEFORE DELETE ON "audit_checkpoints" WHEN OLD."id" >= (SELECT COALESCE(MAX("keys_before"), '') FROM "audit_archives") AND NOT EXISTS (SELECT 1 FROM "cell_hidden_platforms" WHERE 'platform:' || "platform_id" = OLD."chain") BEGIN SELECT RAISE(ABORT, 'rows of audit_checkpoints are never changed or deleted before they are archived'); END;

CREATE TABLE "cell_moves" (
    "platform_id" TEXT NOT NULL PRIMARY KEY,
    "source" TEXT NOT NULL,
    "target" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;

CREATE TABLE "cell_hidden_platforms" (
    "platform_id" TEXT NOT NULL PRIMARY KEY,
    "hidden_at" INTEGER NOT NULL,
    "run" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
