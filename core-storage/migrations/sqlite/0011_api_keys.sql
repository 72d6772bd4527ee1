CREATE TABLE "api_keys" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT,
    "organization_id" TEXT NOT NULL,
    "platform_id" TEXT NOT NULL,
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
CREATE UNIQUE INDEX "api_keys_token" ON "api_keys" ("token_hash");
CREATE UNIQUE INDEX "api_keys_previous" ON "api_keys" ("previous_hash");
CREATE INDEX "api_keys_by_user_id_created_at" ON "api_keys" ("user_id", "created_at", "id");
CREATE INDEX "api_keys_by_organization_id_created_at" ON "api_keys" ("organization_id", "created_at", "id");
CREATE INDEX "api_keys_by_platform_id" ON "api_keys" ("platform_id", "id");
