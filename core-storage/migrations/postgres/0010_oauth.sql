ALTER TABLE "sessions" ADD COLUMN "client_id" TEXT COLLATE "C";

CREATE TABLE "device_authorizations" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "device_code_hash" TEXT COLLATE "C" NOT NULL,
    "user_code" TEXT COLLATE "C" NOT NULL,
    "client_id" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "user_id" TEXT COLLATE "C",
    "organization_id" TEXT COLLATE "C",
    "interval" BIGINT NOT NULL,
    "polled_at" BIGINT,
    "ip_address" TEXT COLLATE "C",
    "user_agent" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "device_authorizations_device_code" ON "device_authorizations" ("device_code_hash");
CREATE UNIQUE INDEX "device_authorizations_user_code" ON "device_authorizations" ("user_code");
CREATE INDEX "device_authorizations_by_expires_at" ON "device_authorizations" ("expires_at", "id");

CREATE TABLE "access_tokens" (
    "token_hash" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "session_id" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "access_tokens_by_session_id_created_at" ON "access_tokens" ("session_id", "created_at", "token_hash");
CREATE INDEX "access_tokens_by_expires_at" ON "access_tokens" ("expires_at", "token_hash");

CREATE TABLE "refresh_tokens" (
    "token_hash" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "session_id" TEXT COLLATE "C" NOT NULL,
    "predecessor_hash" TEXT COLLATE "C",
    "rotated_at" BIGINT,
    "successor_hash" TEXT COLLATE "C",
    "sealed_successor" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "refresh_tokens_by_session_id_created_at" ON "refresh_tokens" ("session_id", "created_at", "token_hash");
CREATE INDEX "refresh_tokens_by_expires_at" ON "refresh_tokens" ("expires_at", "token_hash");

CREATE TABLE "signing_keys" (
    "kid" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "generation" BIGINT NOT NULL,
    "public_key" TEXT COLLATE "C" NOT NULL,
    "sealed_private_key" TEXT COLLATE "C" NOT NULL,
    "active_from" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "signing_keys_generation" ON "signing_keys" ("generation");
