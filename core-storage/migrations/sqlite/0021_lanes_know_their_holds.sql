CREATE TABLE "new_job_lanes" (
    "lane" TEXT NOT NULL PRIMARY KEY,
    "running_job_id" TEXT,
    "state" TEXT NOT NULL,
    "ready_at" INTEGER NOT NULL,
    "not_before" INTEGER NOT NULL,
    "last_claimed_at" INTEGER NOT NULL,
    "front" INTEGER NOT NULL,
    "tail" INTEGER NOT NULL,
    "queued" INTEGER NOT NULL,
    "next" TEXT NOT NULL,
    "held_by" TEXT NOT NULL,
    "head_kind" TEXT,
    "head_priority" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
INSERT INTO "new_job_lanes" ("lane", "running_job_id", "state", "ready_at", "not_before", "last_claimed_at", "front", "tail", "queued", "next", "held_by", "head_kind", "head_priority", "row_version")
    SELECT "lane", "running_job_id", "state", "ready_at", "not_before", "last_claimed_at", "front", "tail", "queued", "next",
        (SELECT json_group_array("source") FROM (SELECT "source" FROM "job_holds" WHERE "scope" = 'lane:' || "job_lanes"."lane" ORDER BY "created_at", "id")),
        "head_kind", "head_priority", "row_version"
    FROM "job_lanes";
DROP TABLE "job_lanes";
ALTER TABLE "new_job_lanes" RENAME TO "job_lanes";
CREATE INDEX "job_lanes_by_head_priority_last_claimed_at_if_state" ON "job_lanes" ("head_priority", "last_claimed_at", "lane") WHERE "state" = 'READY';
CREATE INDEX "job_lanes_by_head_kind_head_priority_last_claimed_at_if_state" ON "job_lanes" ("head_kind", "head_priority", "last_claimed_at", "lane") WHERE "state" = 'READY';
CREATE INDEX "job_lanes_by_ready_at_if_state" ON "job_lanes" ("ready_at", "lane") WHERE "state" = 'LATER';
