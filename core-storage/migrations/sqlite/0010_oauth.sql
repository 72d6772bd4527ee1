ALTER TABLE "sessions" ADD COLUMN "client_id" TEXT;

CREATE TABLE "device_authorizations" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "device_code_hash" TEXT NOT NULL,
    "user_code" TEXT NOT NULL,
    "client_id" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "user_id" TEXT,
    "organization_id" TEXT,
    "interval" INTEGER NOT NULL,
    "polled_at" INTEGER,
    "ip_address" TEXT,
    "user_agent" TEXT,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "device_authorizations_device_code" ON "device_authorizations" ("device_code_hash");
CREATE UNIQUE INDEX "device_authorizations_user_code" ON "device_authorizations" ("user_code");
CREATE INDEX "device_authorizations_by_expires_at" ON "device_authorizations" ("expires_at", "id");

CREATE TABLE "access_tokens" (
    "token_hash" TEXT NOT NULL PRIMARY KEY,
    "session_id" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "access_tokens_by_session_id_created_at" ON "access_tokens" ("session_id", "created_at", "token_hash");
CREATE INDEX "access_tokens_by_expires_at" ON "access_tokens" ("expires_at", "token_hash");

CREATE TABLE "refresh_tokens" (
    "token_hash" TEXT NOT NULL PRIMARY KEY,
    "session_id" TEXT NOT NULL,
    "predecessor_hash" TEXT,
    "rotated_at" INTEGER,
    "successor_hash" TEXT,
    "sealed_successor" TEXT,
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "refresh_tokens_by_session_id_created_at" ON "refresh_tokens" ("session_id", "created_at", "token_hash");
CREATE INDEX "refresh_tokens_by_expires_at" ON "refresh_tokens" ("expires_at", "token_hash");

CREATE TABLE "signing_keys" (
    "kid" TEXT NOT NULL PRIMARY KEY,
    "generation" INTEGER NOT NULL,
    "public_key" TEXT NOT NULL,
    "sealed_private_key" TEXT NOT NULL,
    "active_from" INTEGER NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "signing_keys_generation" ON "signing_keys" ("generation");
