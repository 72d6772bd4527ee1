CREATE TABLE "api_keys" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "user_id" TEXT COLLATE "C",
    "organization_id" TEXT COLLATE "C" NOT NULL,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "name" TEXT COLLATE "C",
    "prefix" TEXT COLLATE "C",
    "start" TEXT COLLATE "C" NOT NULL,
    "scopes" TEXT COLLATE "C",
    "requests_per_minute" BIGINT NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "token_hash" TEXT COLLATE "C" NOT NULL,
    "previous_hash" TEXT COLLATE "C",
    "previous_until" BIGINT,
    "expires_at" BIGINT,
    "last_used_at" BIGINT,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "api_keys_token" ON "api_keys" ("token_hash");
CREATE UNIQUE INDEX "api_keys_previous" ON "api_keys" ("previous_hash");
CREATE INDEX "api_keys_by_user_id_created_at" ON "api_keys" ("user_id", "created_at", "id");
CREATE INDEX "api_keys_by_organization_id_created_at" ON "api_keys" ("organization_id", "created_at", "id");
CREATE INDEX "api_keys_by_platform_id" ON "api_keys" ("platform_id", "id");
