-- release 0.1.0

DROP INDEX "audit_entries_by_stream";
DROP INDEX "audit_entries_by_stream_if_platform_id";
CREATE INDEX "audit_entries_by_id_if_stream" ON "audit_entries" ("id") WHERE "stream" = 'changes';
CREATE INDEX "audit_entries_by_id_if_stream_if_platform_id" ON "audit_entries" ("id") WHERE "stream" = 'changes' AND "platform_id" IS NULL;
CREATE INDEX "audit_entries_by_id_if_stream_if_platform_id_2" ON "audit_entries" ("id") WHERE "stream" = 'reads' AND "platform_id" IS NULL;

DROP INDEX "billing_subscriptions_by_status_created_at";
CREATE INDEX "billing_subscriptions_by_status_created_at" ON "billing_subscriptions" ("status", "created_at", "id", "tier", "interval", "amount");

DROP INDEX "billing_invoices_by_period_start_if_status";
CREATE INDEX "billing_invoices_by_period_start_if_status" ON "billing_invoices" ("period_start", "id", "attempt_count", "amount_remaining") WHERE "status" = 'open';

DROP INDEX "billing_credit_grants_by_effective_at_if_status";
CREATE INDEX "billing_credit_grants_by_effective_at_if_status" ON "billing_credit_grants" ("effective_at", "id", "remaining") WHERE "status" = 'active';

ALTER TABLE "billing_journal_entries" ADD COLUMN "revenue" INTEGER;
UPDATE "billing_journal_entries" SET "revenue" = (SELECT NULLIF(-SUM(json_extract(value, '$.amount')), 0) FROM json_each("postings") WHERE json_extract(value, '$.account') = 'revenue');
CREATE INDEX "billing_journal_entries_by_at_if_revenue" ON "billing_journal_entries" ("at", "id", "revenue") WHERE "revenue" IS NOT NULL;
