DROP INDEX "dns_records_by_platform_id_stack_id_created_at";
DROP INDEX "dns_records_by_resource_id_created_at_if_status";
ALTER TABLE "dns_records" ADD COLUMN "missing_records" TEXT COLLATE "C" NOT NULL DEFAULT '[]';
ALTER TABLE "dns_records" ALTER COLUMN "missing_records" DROP DEFAULT;
ALTER TABLE "dns_records" ADD COLUMN "proof" TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE "dns_records" ALTER COLUMN "proof" DROP DEFAULT;
ALTER TABLE "dns_records" ADD COLUMN "is_vouched" BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE "dns_records" ALTER COLUMN "is_vouched" DROP DEFAULT;
ALTER TABLE "dns_records" ADD COLUMN "checked_since" BIGINT;
ALTER TABLE "dns_records" ADD COLUMN "proof_missing_since" BIGINT;
ALTER TABLE "dns_records" ADD COLUMN "job_id" TEXT COLLATE "C";
CREATE UNIQUE INDEX "dns_records_entered" ON "dns_records" ("platform_id", "hostname") WHERE "status" IN ('pending', 'active', 'failed');
CREATE INDEX "dns_records_by_platform_id_created_at" ON "dns_records" ("platform_id", "created_at", "id");
CREATE INDEX "dns_records_by_platform_id_stack_id_created_at" ON "dns_records" ("platform_id", "stack_id", "created_at", "id");
CREATE INDEX "dns_records_by_platform_id_stack_id_created_at_if_status" ON "dns_records" ("platform_id", "stack_id", "created_at", "id") WHERE "status" IN ('pending', 'active', 'failed');
CREATE INDEX "dns_records_by_resource_id_created_at_if_status" ON "dns_records" ("resource_id", "created_at", "id") WHERE "status" IN ('pending', 'active', 'failed');
CREATE INDEX "dns_records_by_hostname_created_at" ON "dns_records" ("hostname", "created_at", "id");
CREATE INDEX "dns_records_by_created_at_if_status" ON "dns_records" ("created_at", "id") WHERE "status" = 'active';

ALTER TABLE "custom_domains" ADD COLUMN "is_vouched" BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE "custom_domains" ALTER COLUMN "is_vouched" DROP DEFAULT;
ALTER TABLE "custom_domains" ADD COLUMN "proof_missing_since" BIGINT;
CREATE INDEX "custom_domains_by_hostname_created_at" ON "custom_domains" ("hostname", "created_at", "id");
CREATE INDEX "custom_domains_by_created_at_if_status_2" ON "custom_domains" ("created_at", "id") WHERE "status" = 'active';
-- No record was ever served. Entered again, it is, once its hostname is proved.
UPDATE "dns_records" SET "status" = 'failed' WHERE "status" = 'active';
