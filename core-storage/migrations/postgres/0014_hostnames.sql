DROP INDEX "custom_domains_hostname";
CREATE UNIQUE INDEX "custom_domains_entered" ON "custom_domains" ("platform_id", "hostname") WHERE "status" IN ('pending', 'verifying', 'active', 'failed');
CREATE UNIQUE INDEX "custom_domains_hostname" ON "custom_domains" ("hostname") WHERE "status" = 'active';
