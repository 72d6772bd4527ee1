CREATE TABLE "new_dns_records" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "stack_id" TEXT NOT NULL,
    "hostname" TEXT NOT NULL,
    "target_type" TEXT NOT NULL,
    "resource_id" TEXT NOT NULL,
    "environment" TEXT NOT NULL,
    "cf_route_id" TEXT,
    "status" TEXT NOT NULL,
    "missing_records" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "proof" TEXT NOT NULL,
    "is_vouched" INTEGER NOT NULL CHECK ("is_vouched" IN (0, 1)),
    "checked_since" INTEGER,
    "proof_missing_since" INTEGER,
    "job_id" TEXT,
    "row_version" INTEGER NOT NULL
) STRICT;
INSERT INTO "new_dns_records" ("id", "platform_id", "stack_id", "hostname", "target_type", "resource_id", "environment", "cf_route_id", "status", "missing_records", "created_at", "updated_at", "proof", "is_vouched", "checked_since", "proof_missing_since", "job_id", "row_version")
    SELECT "id", "platform_id", "stack_id", "hostname", "target_type", "resource_id", "environment", "cf_route_id", "status", '[]', "created_at", "updated_at", '', 0, NULL, NULL, NULL, "row_version"
    FROM "dns_records";
DROP TABLE "dns_records";
ALTER TABLE "new_dns_records" RENAME TO "dns_records";
CREATE UNIQUE INDEX "dns_records_entered" ON "dns_records" ("platform_id", "hostname") WHERE "status" IN ('pending', 'active', 'failed');
CREATE UNIQUE INDEX "dns_records_hostname" ON "dns_records" ("hostname") WHERE "status" = 'active';
CREATE INDEX "dns_records_by_platform_id_created_at" ON "dns_records" ("platform_id", "created_at", "id");
CREATE INDEX "dns_records_by_platform_id_stack_id_created_at" ON "dns_records" ("platform_id", "stack_id", "created_at", "id");
CREATE INDEX "dns_records_by_platform_id_stack_id_created_at_if_status" ON "dns_records" ("platform_id", "stack_id", "created_at", "id") WHERE "status" IN ('pending', 'active', 'failed');
CREATE INDEX "dns_records_by_resource_id_created_at_if_status" ON "dns_records" ("resource_id", "created_at", "id") WHERE "status" IN ('pending', 'active', 'failed');
CREATE INDEX "dns_records_by_hostname_created_at" ON "dns_records" ("hostname", "created_at", "id");
CREATE INDEX "dns_records_by_created_at_if_status" ON "dns_records" ("created_at", "id") WHERE "status" = 'active';

CREATE TABLE "new_custom_domains" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "dns_record_id" TEXT NOT NULL,
    "hostname" TEXT NOT NULL,
    "target_dns" TEXT NOT NULL,
    "cf_hostname_id" TEXT,
    "ssl_status" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "verified_at" INTEGER,
    "missing_records" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "proof" TEXT NOT NULL,
    "checked_since" INTEGER,
    "job_id" TEXT NOT NULL,
    "is_vouched" INTEGER NOT NULL CHECK ("is_vouched" IN (0, 1)),
    "proof_missing_since" INTEGER,
    "row_version" INTEGER NOT NULL
) STRICT;
INSERT INTO "new_custom_domains" ("id", "platform_id", "dns_record_id", "hostname", "target_dns", "cf_hostname_id", "ssl_status", "status", "verified_at", "missing_records", "created_at", "updated_at", "proof", "checked_since", "job_id", "is_vouched", "proof_missing_since", "row_version")
    SELECT "id", "platform_id", "dns_record_id", "hostname", "target_dns", "cf_hostname_id", "ssl_status", "status", "verified_at", "missing_records", "created_at", "updated_at", "proof", "checked_since", "job_id", 0, NULL, "row_version"
    FROM "custom_domains";
DROP TABLE "custom_domains";
ALTER TABLE "new_custom_domains" RENAME TO "custom_domains";
CREATE UNIQUE INDEX "custom_domains_entered" ON "custom_domains" ("platform_id", "hostname") WHERE "status" IN ('pending', 'verifying', 'active', 'failed');
CREATE UNIQUE INDEX "custom_domains_hostname" ON "custom_domains" ("hostname") WHERE "status" = 'active';
CREATE INDEX "custom_domains_by_platform_id_created_at" ON "custom_domains" ("platform_id", "created_at", "id");
CREATE INDEX "custom_domains_by_platform_id_created_at_if_status" ON "custom_domains" ("platform_id", "created_at", "id") WHERE "status" IN ('pending', 'verifying', 'active', 'failed');
CREATE INDEX "custom_domains_by_dns_record_id_created_at_if_status" ON "custom_domains" ("dns_record_id", "created_at", "id") WHERE "status" IN ('pending', 'verifying', 'active', 'failed');
CREATE INDEX "custom_domains_by_created_at_if_status" ON "custom_domains" ("created_at", "id") WHERE "status" IN ('pending', 'verifying');
CREATE INDEX "custom_domains_by_hostname_created_at" ON "custom_domains" ("hostname", "created_at", "id");
CREATE INDEX "custom_domains_by_created_at_if_status_2" ON "custom_domains" ("created_at", "id") WHERE "status" = 'active';
-- No record was ever served. Entered again, it is, once its hostname is proved.
UPDATE "dns_records" SET "status" = 'failed' WHERE "status" = 'active';
