ALTER TABLE "job_lanes" ADD COLUMN "held_by" TEXT COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE "job_lanes" ALTER COLUMN "held_by" DROP DEFAULT;
UPDATE "job_lanes" SET "held_by" = "on_lane"."sources"
    FROM (SELECT "scope", '["' || string_agg("source", '","' ORDER BY "created_at", "id") || '"]' AS "sources" FROM "job_holds" GROUP BY "scope") AS "on_lane"
    WHERE "on_lane"."scope" = 'lane:' || "job_lanes"."lane";
