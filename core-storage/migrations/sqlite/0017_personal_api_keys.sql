CREATE TABLE "new_api_keys" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT,
    "organization_id" TEXT,
    "platform_id" TEXT,
    "name" TEXT,
    "prefix" TEXT,
    "start" TEXT NOT NULL,
    "scopes" TEXT,
    "requests_per_minute" INTEGER NOT NULL,
    "status" TEXT NOT NULL,
    "token_hash" TEXT NOT NULL,
    "previous_hash" TEXT,
    "previous_until" INTEGER,
    "expires_at" INTEGER,
    "last_used_at" INTEGER,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
INSERT INTO "new_api_keys" ("id", "user_id", "organization_id", "platform_id", "name", "prefix", "start", "scopes", "requests_per_minute", "status", "token_hash", "previous_hash", "previous_until", "expires_at", "last_used_at", "created_at", "updated_at", "row_version")
    SELECT "id", "user_id", "organization_id", "platform_id", "name", "prefix", "start", "scopes", "requests_per_minute", "status", "token_hash", "previous_hash", "previous_until", "expires_at", "last_used_at", "created_at", "updated_at", "row_version"
    FROM "api_keys";
DROP TABLE "api_keys";
ALTER TABLE "new_api_keys" RENAME TO "api_keys";
CREATE UNIQUE INDEX "api_keys_token" ON "api_keys" ("token_hash");
CREATE UNIQUE INDEX "api_keys_previous" ON "api_keys" ("previous_hash");
CREATE INDEX "api_keys_by_user_id_created_at" ON "api_keys" ("user_id", "created_at", "id");
CREATE INDEX "api_keys_by_organization_id_created_at" ON "api_keys" ("organization_id", "created_at", "id");
CREATE INDEX "api_keys_by_platform_id" ON "api_keys" ("platform_id", "id");
CREATE INDEX "api_keys_by_updated_at_if_status" ON "api_keys" ("updated_at", "id") WHERE "status" = 'revoked';
CREATE INDEX "api_keys_by_expires_at_if_expires_at" ON "api_keys" ("expires_at", "id") WHERE "expires_at" IS NOT NULL;
