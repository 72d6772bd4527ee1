-- release 0.1.0

DROP TRIGGER IF EXISTS "audit_entries_refuses_change" ON "audit_entries";
DROP TRIGGER IF EXISTS "audit_entries_refuses_delete" ON "audit_entries";
CREATE OR REPLACE FUNCTION "refuse_change"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'rows of % are never changed or deleted', TG_TABLE_NAME; END $$;
CREATE TRIGGER "audit_entries_refuses_change" BEFORE UPDATE OR TRUNCATE ON "audit_entries" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
CREATE OR REPLACE FUNCTION "audit_entries_refuse_delete"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD."id" >= (SELECT COALESCE(MAX("keys_before"), '') FROM "audit_archives") THEN RAISE EXCEPTION 'rows of % are never changed or deleted before they are archived', TG_TABLE_NAME; END IF; RETURN OLD; END $$;
CREATE TRIGGER "audit_entries_refuses_delete" BEFORE DELETE ON "audit_entries" FOR EACH ROW EXECUTE FUNCTION "audit_entries_refuse_delete"();

DROP TRIGGER IF EXISTS "audit_seals_refuses_change" ON "audit_seals";
DROP TRIGGER IF EXISTS "audit_seals_refuses_delete" ON "audit_seals";
CREATE OR REPLACE FUNCTION "refuse_change"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'rows of % are never changed or deleted', TG_TABLE_NAME; END $$;
CREATE TRIGGER "audit_seals_refuses_change" BEFORE UPDATE OR TRUNCATE ON "audit_seals" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
CREATE OR REPLACE FUNCTION "audit_seals_refuse_delete"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD."entry_id" >= (SELECT COALESCE(MAX("keys_before"), '') FROM "audit_archives") THEN RAISE EXCEPTION 'rows of % are never changed or deleted before they are archived', TG_TABLE_NAME; END IF; RETURN OLD; END $$;
CREATE TRIGGER "audit_seals_refuses_delete" BEFORE DELETE ON "audit_seals" FOR EACH ROW EXECUTE FUNCTION "audit_seals_refuse_delete"();

ALTER TABLE "audit_heads" ADD COLUMN "removed_changes" BIGINT;

DROP TRIGGER IF EXISTS "audit_checkpoints_refuses_change" ON "audit_checkpoints";
DROP TRIGGER IF EXISTS "audit_checkpoints_refuses_delete" ON "audit_checkpoints";
ALTER TABLE "audit_checkpoints" ADD COLUMN "archived_until" BIGINT;
CREATE OR REPLACE FUNCTION "refuse_change"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'rows of % are never changed or deleted', TG_TABLE_NAME; END $$;
CREATE TRIGGER "audit_checkpoints_refuses_change" BEFORE UPDATE OR TRUNCATE ON "audit_checkpoints" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
CREATE OR REPLACE FUNCTION "audit_checkpoints_refuse_delete"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD."id" >= (SELECT COALESCE(MAX("keys_before"), '') FROM "audit_archives") THEN RAISE EXCEPTION 'rows of % are never changed or deleted before they are archived', TG_TABLE_NAME; END IF; RETURN OLD; END $$;
CREATE TRIGGER "audit_checkpoints_refuses_delete" BEFORE DELETE ON "audit_checkpoints" FOR EACH ROW EXECUTE FUNCTION "audit_checkpoints_refuse_delete"();

CREATE TABLE "audit_archives" (
    "month" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "keys_before" TEXT COLLATE "C" NOT NULL,
    "after" BIGINT NOT NULL,
    "position" BIGINT NOT NULL,
    "feed_position" BIGINT NOT NULL,
    "feed_hash" TEXT COLLATE "C" NOT NULL,
    "digest" TEXT COLLATE "C" NOT NULL,
    "previous" TEXT COLLATE "C" NOT NULL,
    "archived_at" BIGINT NOT NULL,
    "jws" TEXT COLLATE "C" NOT NULL,
    "removed_at" BIGINT,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "audit_archives_by_keys_before" ON "audit_archives" ("keys_before", "month");
