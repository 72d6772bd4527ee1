CREATE TABLE "unsealed_audit_entries" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "stream" TEXT COLLATE "C" NOT NULL,
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
CREATE INDEX "unsealed_audit_entries_by_stream_created_at" ON "unsealed_audit_entries" ("stream", "created_at", "id");
INSERT INTO "unsealed_audit_entries" ("id", "stream", "platform_id", "actor_id", "actor_type", "action", "entity_type", "entity_id", "before", "after", "metadata", "created_at", "row_version") SELECT "id", "stream", "platform_id", "actor_id", "actor_type", "action", "entity_type", "entity_id", "before", "after", "metadata", "created_at", "row_version" FROM "audit_entries" WHERE "id" IN (SELECT "id" FROM "unsealed_entries");
DELETE FROM "audit_entries" WHERE "id" IN (SELECT "id" FROM "unsealed_entries");
DROP TABLE "unsealed_entries";
DROP TRIGGER IF EXISTS "audit_entries_refuses_change" ON "audit_entries";
CREATE OR REPLACE FUNCTION "refuse_change"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'rows of % are never changed or deleted', TG_TABLE_NAME; END $$;
CREATE TRIGGER "audit_entries_refuses_change" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_entries" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();

DROP TRIGGER IF EXISTS "audit_seals_refuses_change" ON "audit_seals";
CREATE OR REPLACE FUNCTION "refuse_change"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'rows of % are never changed or deleted', TG_TABLE_NAME; END $$;
CREATE TRIGGER "audit_seals_refuses_change" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_seals" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();

DROP TRIGGER IF EXISTS "audit_checkpoints_refuses_change" ON "audit_checkpoints";
CREATE OR REPLACE FUNCTION "refuse_change"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'rows of % are never changed or deleted', TG_TABLE_NAME; END $$;
CREATE TRIGGER "audit_checkpoints_refuses_change" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_checkpoints" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_change"();
