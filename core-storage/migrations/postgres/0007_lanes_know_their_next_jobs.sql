DROP INDEX "jobs_by_deadline_at";
DROP INDEX "jobs_by_lane_status_lane_position";
DROP INDEX "jobs_by_status_run_at";
CREATE INDEX "jobs_by_lane_lane_position_if_status" ON "jobs" ("lane", "lane_position", "id") WHERE "status" = 'QUEUED';
CREATE INDEX "jobs_by_run_at_if_status" ON "jobs" ("run_at", "id") WHERE "status" = 'WAITING';
CREATE INDEX "jobs_by_deadline_at_if_status" ON "jobs" ("deadline_at", "id") WHERE "status" IN ('QUEUED', 'RUNNING', 'WAITING');

DROP INDEX "job_lanes_by_ready_at";
ALTER TABLE "job_lanes" ADD COLUMN "state" TEXT COLLATE "C" NOT NULL DEFAULT 'IDLE';
ALTER TABLE "job_lanes" ALTER COLUMN "state" DROP DEFAULT;
ALTER TABLE "job_lanes" ADD COLUMN "queued" BIGINT NOT NULL DEFAULT 0;
ALTER TABLE "job_lanes" ALTER COLUMN "queued" DROP DEFAULT;
ALTER TABLE "job_lanes" ADD COLUMN "next" TEXT COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE "job_lanes" ALTER COLUMN "next" DROP DEFAULT;
-- A lane is told its next jobs, and whether its head is held, by the first claim that looks at it.
UPDATE "job_lanes" SET "ready_at" = 0, "head_kind" = NULL, "head_priority" = 0,
    "state" = CASE WHEN "running_job_id" IS NULL AND "head_job_id" IS NOT NULL THEN 'LATER' ELSE 'IDLE' END,
    "queued" = (SELECT COUNT(*) FROM "jobs" WHERE "jobs"."lane" = "job_lanes"."lane" AND "jobs"."status" = 'QUEUED');
ALTER TABLE "job_lanes" DROP COLUMN "head_job_id";
ALTER TABLE "job_lanes" ALTER COLUMN "ready_at" SET NOT NULL;
CREATE INDEX "job_lanes_by_head_priority_last_claimed_at_if_state" ON "job_lanes" ("head_priority", "last_claimed_at", "lane") WHERE "state" = 'READY';
CREATE INDEX "job_lanes_by_head_kind_head_priority_last_claimed_at_if_state" ON "job_lanes" ("head_kind", "head_priority", "last_claimed_at", "lane") WHERE "state" = 'READY';
CREATE INDEX "job_lanes_by_ready_at_if_state" ON "job_lanes" ("ready_at", "lane") WHERE "state" = 'LATER';

DROP INDEX "job_leases_by_lease_until";
