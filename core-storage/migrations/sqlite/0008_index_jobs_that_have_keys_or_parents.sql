DROP INDEX "jobs_by_parent_job_id";
DROP INDEX "jobs_idempotency_key";
CREATE UNIQUE INDEX "jobs_idempotency_key" ON "jobs" ("idempotency_key") WHERE "idempotency_key" IS NOT NULL;
CREATE INDEX "jobs_by_parent_job_id_if_parent_job_id" ON "jobs" ("parent_job_id", "id") WHERE "parent_job_id" IS NOT NULL;
