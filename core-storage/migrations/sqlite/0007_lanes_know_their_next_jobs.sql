DROP INDEX "jobs_by_deadline_at";
DROP INDEX "jobs_by_lane_status_lane_position";
DROP INDEX "jobs_by_status_run_at";
CREATE INDEX "jobs_by_lane_lane_position_if_status" ON "jobs" ("lane", "lane_position", "id") WHERE "status" = 'QUEUED';
CREATE INDEX "jobs_by_run_at_if_status" ON "jobs" ("run_at", "id") WHERE "status" = 'WAITING';
CREATE INDEX "jobs_by_deadline_at_if_status" ON "jobs" ("deadline_at", "id") WHERE "status" IN ('QUEUED', 'RUNNING', 'WAITING');

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
    "head_kind" TEXT,
    "head_priority" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
-- A lane is told its next jobs, and whether its head is held, by the first claim that looks at it.
INSERT INTO "new_job_lanes" ("lane", "running_job_id", "state", "ready_at", "not_before", "last_claimed_at", "front", "tail", "queued", "next", "head_kind", "head_priority", "row_version")
    SELECT "lane", "running_job_id", CASE WHEN "running_job_id" IS NULL AND "head_job_id" IS NOT NULL THEN 'LATER' ELSE 'IDLE' END, 0, "not_before", "last_claimed_at", "front", "tail",
        (SELECT COUNT(*) FROM "jobs" WHERE "jobs"."lane" = "job_lanes"."lane" AND "jobs"."status" = 'QUEUED'), '[]', NULL, 0, "row_version"
    FROM "job_lanes";
DROP TABLE "job_lanes";
ALTER TABLE "new_job_lanes" RENAME TO "job_lanes";
CREATE INDEX "job_lanes_by_head_priority_last_claimed_at_if_state" ON "job_lanes" ("head_priority", "last_claimed_at", "lane") WHERE "state" = 'READY';
CREATE INDEX "job_lanes_by_head_kind_head_priority_last_claimed_at_if_state" ON "job_lanes" ("head_kind", "head_priority", "last_claimed_at", "lane") WHERE "state" = 'READY';
CREATE INDEX "job_lanes_by_ready_at_if_state" ON "job_lanes" ("ready_at", "lane") WHERE "state" = 'LATER';

DROP INDEX "job_leases_by_lease_until";
