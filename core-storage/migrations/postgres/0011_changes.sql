-- release 0.1.0

CREATE TABLE "cell_changes" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "table_name" TEXT COLLATE "C" NOT NULL,
    "row_key" TEXT COLLATE "C" NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "cell_changes_by_platform_id" ON "cell_changes" ("platform_id", "id");

CREATE FUNCTION "record_change"() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ DECLARE changed jsonb; BEGIN IF TG_OP = 'DELETE' THEN changed := to_jsonb(OLD); ELSE changed := to_jsonb(NEW); END IF; INSERT INTO "cell_changes" ("id", "platform_id", "table_name", "row_key", "row_version") VALUES (gen_random_uuid()::text, TG_ARGV[0], TG_TABLE_NAME, changed ->> TG_ARGV[1], 1); RETURN NULL; END $$;
