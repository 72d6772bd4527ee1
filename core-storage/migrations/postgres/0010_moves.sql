-- release 0.1.0

CREATE OR REPLACE FUNCTION "audit_entries_refuse_delete"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD."id" >= (SELECT COALESCE(MAX("keys_before"), '') FROM "audit_archives") AND NOT EXISTS (SELECT 1 FROM "cell_hidden_platforms" WHERE "platform_id" = OLD."platform_id") THEN RAISE EXCEPTION 'rows of % are never changed or deleted before they are archived', TG_TABLE_NAME; END IF; RETURN OLD; END $$;
CREATE OR REPLACE FUNCTION "audit_seals_refuse_delete"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD."entry_id" >= (SELECT COALESCE(MAX("keys_before"), '') FROM "audit_archives") AND NOT EXISTS (SELECT 1 FROM "cell_hidden_platforms" WHERE 'platform:' || "platform_id" = OLD."chain") THEN RAISE EXCEPTION 'rows of % are never changed or deleted before they are archived', TG_TABLE_NAME; END IF; RETURN OLD; END $$;
CREATE OR REPLACE FUNCTION "audit_checkpoints_refuse_delete"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD."id" >= (SELECT COALESCE(MAX("keys_before"), '') FROM "audit_archives") AND NOT EXISTS (SELECT 1 FROM "cell_hidden_platforms" WHERE 'platform:' || "platform_id" = OLD."chain") THEN RAISE EXCEPTION 'rows of % are never changed or deleted before they are archived', TG_TABLE_NAME; END IF; RETURN OLD; END $$;

CREATE TABLE "cell_moves" (
    "platform_id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "source" TEXT COLLATE "C" NOT NULL,
    "target" TEXT COLLATE "C" NOT NULL,
    "row_version" BIGINT NOT NULL
);

CREATE TABLE "cell_hidden_platforms" (
    "platform_id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "hidden_at" BIGINT NOT NULL,
    "run" TEXT COLLATE "C" NOT NULL,
    "row_version" BIGINT NOT NULL
);
