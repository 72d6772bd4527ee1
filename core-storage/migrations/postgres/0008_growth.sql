-- release 0.1.0

ALTER TABLE "billing_journal_entries" ADD COLUMN "revenue" BIGINT;
UPDATE "billing_journal_entries" SET "revenue" = (SELECT NULLIF(-SUM((posting ->> 'amount')::bigint), 0)::bigint FROM jsonb_array_elements("postings"::jsonb) posting WHERE posting ->> 'account' = 'revenue') WHERE "postings" LIKE '%"revenue"%';
