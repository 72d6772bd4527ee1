-- release 0.1.0
-- outside a transaction

CREATE INDEX CONCURRENTLY IF NOT EXISTS "cell_platforms_by_organization_id_cell" ON "cell_platforms" ("organization_id", "cell", "platform_id");
