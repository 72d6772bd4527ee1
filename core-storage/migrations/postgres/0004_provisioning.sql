CREATE TABLE "jobs" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "kind" TEXT COLLATE "C" NOT NULL,
    "definition_version" BIGINT NOT NULL,
    "platform_id" TEXT COLLATE "C",
    "entity_id" TEXT COLLATE "C",
    "environment" TEXT COLLATE "C",
    "lane" TEXT COLLATE "C" NOT NULL,
    "lane_position" BIGINT NOT NULL,
    "priority" BIGINT NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "reason" TEXT COLLATE "C",
    "failure_kind" TEXT COLLATE "C",
    "error" TEXT COLLATE "C",
    "input" TEXT COLLATE "C" NOT NULL,
    "output" TEXT COLLATE "C",
    "steps" TEXT COLLATE "C" NOT NULL,
    "attempts" BIGINT NOT NULL,
    "max_attempts" BIGINT NOT NULL,
    "lost_leases" BIGINT NOT NULL,
    "run_at" BIGINT NOT NULL,
    "deadline_at" BIGINT NOT NULL,
    "waiting_for" TEXT COLLATE "C",
    "forced" BOOLEAN NOT NULL,
    "replay_count" BIGINT NOT NULL,
    "dlq_entry_id" TEXT COLLATE "C",
    "parent_job_id" TEXT COLLATE "C",
    "idempotency_key" TEXT COLLATE "C",
    "request_id" TEXT COLLATE "C" NOT NULL,
    "trace_id" TEXT COLLATE "C",
    "created_by" TEXT COLLATE "C" NOT NULL,
    "fence" BIGINT NOT NULL,
    "event_count" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "started_at" BIGINT,
    "finished_at" BIGINT,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "jobs_idempotency_key" ON "jobs" ("idempotency_key");
CREATE UNIQUE INDEX "jobs_running" ON "jobs" ("lane") WHERE "status" = 'RUNNING';
CREATE INDEX "jobs_by_created_at" ON "jobs" ("created_at", "id");
CREATE INDEX "jobs_by_platform_id_created_at" ON "jobs" ("platform_id", "created_at", "id");
CREATE INDEX "jobs_by_status_created_at" ON "jobs" ("status", "created_at", "id");
CREATE INDEX "jobs_by_lane_status_lane_position" ON "jobs" ("lane", "status", "lane_position", "id");
CREATE INDEX "jobs_by_status_run_at" ON "jobs" ("status", "run_at", "id");
CREATE INDEX "jobs_by_deadline_at" ON "jobs" ("deadline_at", "id");

CREATE TABLE "job_events" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "job_id" TEXT COLLATE "C" NOT NULL,
    "seq" BIGINT NOT NULL,
    "at" BIGINT NOT NULL,
    "event_type" TEXT COLLATE "C" NOT NULL,
    "from_status" TEXT COLLATE "C",
    "to_status" TEXT COLLATE "C" NOT NULL,
    "step" TEXT COLLATE "C",
    "fence" BIGINT NOT NULL,
    "actor" TEXT COLLATE "C" NOT NULL,
    "reason" TEXT COLLATE "C",
    "request_id" TEXT COLLATE "C",
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "job_events_seq" ON "job_events" ("job_id", "seq");

CREATE TABLE "job_lanes" (
    "lane" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "running_job_id" TEXT COLLATE "C",
    "head_job_id" TEXT COLLATE "C",
    "head_kind" TEXT COLLATE "C",
    "head_priority" BIGINT NOT NULL,
    "ready_at" BIGINT,
    "not_before" BIGINT NOT NULL,
    "last_claimed_at" BIGINT NOT NULL,
    "front" BIGINT NOT NULL,
    "tail" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "job_lanes_by_ready_at" ON "job_lanes" ("ready_at", "lane");

CREATE TABLE "job_leases" (
    "job_id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "fence" BIGINT NOT NULL,
    "owner" TEXT COLLATE "C" NOT NULL,
    "lease_until" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "job_leases_by_lease_until" ON "job_leases" ("lease_until", "job_id");

CREATE TABLE "job_holds" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "scope" TEXT COLLATE "C" NOT NULL,
    "source" TEXT COLLATE "C" NOT NULL,
    "reason" TEXT COLLATE "C",
    "actor" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "job_holds_source" ON "job_holds" ("scope", "source");
CREATE INDEX "job_holds_by_scope_created_at" ON "job_holds" ("scope", "created_at", "id");

CREATE TABLE "dlq_entries" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "job_id" TEXT COLLATE "C" NOT NULL,
    "platform_id" TEXT COLLATE "C",
    "kind" TEXT COLLATE "C" NOT NULL,
    "environment" TEXT COLLATE "C",
    "status" TEXT COLLATE "C" NOT NULL,
    "failure_kind" TEXT COLLATE "C" NOT NULL,
    "failed_step" TEXT COLLATE "C",
    "error" TEXT COLLATE "C",
    "attempts" BIGINT NOT NULL,
    "input" TEXT COLLATE "C" NOT NULL,
    "request_id" TEXT COLLATE "C" NOT NULL,
    "trace_id" TEXT COLLATE "C",
    "replay_count" BIGINT NOT NULL,
    "replayed_at" BIGINT,
    "replayed_by" TEXT COLLATE "C",
    "resolved_at" BIGINT,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "dlq_entries_open" ON "dlq_entries" ("job_id") WHERE "status" IN ('PENDING', 'REPLAYED');
CREATE INDEX "dlq_entries_by_created_at" ON "dlq_entries" ("created_at", "id");
CREATE INDEX "dlq_entries_by_status_created_at" ON "dlq_entries" ("status", "created_at", "id");
CREATE INDEX "dlq_entries_by_job_id" ON "dlq_entries" ("job_id", "id");
