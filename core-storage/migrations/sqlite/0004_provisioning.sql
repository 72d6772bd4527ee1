CREATE TABLE "jobs" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "kind" TEXT NOT NULL,
    "definition_version" INTEGER NOT NULL,
    "platform_id" TEXT,
    "entity_id" TEXT,
    "environment" TEXT,
    "lane" TEXT NOT NULL,
    "lane_position" INTEGER NOT NULL,
    "priority" INTEGER NOT NULL,
    "status" TEXT NOT NULL,
    "reason" TEXT,
    "failure_kind" TEXT,
    "error" TEXT,
    "input" TEXT NOT NULL,
    "output" TEXT,
    "steps" TEXT NOT NULL,
    "attempts" INTEGER NOT NULL,
    "max_attempts" INTEGER NOT NULL,
    "lost_leases" INTEGER NOT NULL,
    "run_at" INTEGER NOT NULL,
    "deadline_at" INTEGER NOT NULL,
    "waiting_for" TEXT,
    "forced" INTEGER NOT NULL CHECK ("forced" IN (0, 1)),
    "replay_count" INTEGER NOT NULL,
    "dlq_entry_id" TEXT,
    "parent_job_id" TEXT,
    "idempotency_key" TEXT,
    "request_id" TEXT NOT NULL,
    "trace_id" TEXT,
    "created_by" TEXT NOT NULL,
    "fence" INTEGER NOT NULL,
    "event_count" INTEGER NOT NULL,
    "created_at" INTEGER NOT NULL,
    "started_at" INTEGER,
    "finished_at" INTEGER,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "jobs_idempotency_key" ON "jobs" ("idempotency_key");
CREATE UNIQUE INDEX "jobs_running" ON "jobs" ("lane") WHERE "status" = 'RUNNING';
CREATE INDEX "jobs_by_created_at" ON "jobs" ("created_at", "id");
CREATE INDEX "jobs_by_platform_id_created_at" ON "jobs" ("platform_id", "created_at", "id");
CREATE INDEX "jobs_by_status_created_at" ON "jobs" ("status", "created_at", "id");
CREATE INDEX "jobs_by_lane_status_lane_position" ON "jobs" ("lane", "status", "lane_position", "id");
CREATE INDEX "jobs_by_status_run_at" ON "jobs" ("status", "run_at", "id");
CREATE INDEX "jobs_by_deadline_at" ON "jobs" ("deadline_at", "id");

CREATE TABLE "job_events" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "job_id" TEXT NOT NULL,
    "seq" INTEGER NOT NULL,
    "at" INTEGER NOT NULL,
    "event_type" TEXT NOT NULL,
    "from_status" TEXT,
    "to_status" TEXT NOT NULL,
    "step" TEXT,
    "fence" INTEGER NOT NULL,
    "actor" TEXT NOT NULL,
    "reason" TEXT,
    "request_id" TEXT,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "job_events_seq" ON "job_events" ("job_id", "seq");

CREATE TABLE "job_lanes" (
    "lane" TEXT NOT NULL PRIMARY KEY,
    "running_job_id" TEXT,
    "head_job_id" TEXT,
    "head_kind" TEXT,
    "head_priority" INTEGER NOT NULL,
    "ready_at" INTEGER,
    "not_before" INTEGER NOT NULL,
    "last_claimed_at" INTEGER NOT NULL,
    "front" INTEGER NOT NULL,
    "tail" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "job_lanes_by_ready_at" ON "job_lanes" ("ready_at", "lane");

CREATE TABLE "job_leases" (
    "job_id" TEXT NOT NULL PRIMARY KEY,
    "fence" INTEGER NOT NULL,
    "owner" TEXT NOT NULL,
    "lease_until" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "job_leases_by_lease_until" ON "job_leases" ("lease_until", "job_id");

CREATE TABLE "job_holds" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "scope" TEXT NOT NULL,
    "source" TEXT NOT NULL,
    "reason" TEXT,
    "actor" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "job_holds_source" ON "job_holds" ("scope", "source");
CREATE INDEX "job_holds_by_scope_created_at" ON "job_holds" ("scope", "created_at", "id");

CREATE TABLE "dlq_entries" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "job_id" TEXT NOT NULL,
    "platform_id" TEXT,
    "kind" TEXT NOT NULL,
    "environment" TEXT,
    "status" TEXT NOT NULL,
    "failure_kind" TEXT NOT NULL,
    "failed_step" TEXT,
    "error" TEXT,
    "attempts" INTEGER NOT NULL,
    "input" TEXT NOT NULL,
    "request_id" TEXT NOT NULL,
    "trace_id" TEXT,
    "replay_count" INTEGER NOT NULL,
    "replayed_at" INTEGER,
    "replayed_by" TEXT,
    "resolved_at" INTEGER,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "dlq_entries_open" ON "dlq_entries" ("job_id") WHERE "status" IN ('PENDING', 'REPLAYED');
CREATE INDEX "dlq_entries_by_created_at" ON "dlq_entries" ("created_at", "id");
CREATE INDEX "dlq_entries_by_status_created_at" ON "dlq_entries" ("status", "created_at", "id");
CREATE INDEX "dlq_entries_by_job_id" ON "dlq_entries" ("job_id", "id");
