CREATE INDEX "sessions_by_expires_at" ON "sessions" ("expires_at", "id");

CREATE INDEX "device_authorizations_by_user_id_if_status" ON "device_authorizations" ("user_id", "id") WHERE "status" = 'approved';

CREATE INDEX "api_keys_by_updated_at_if_status" ON "api_keys" ("updated_at", "id") WHERE "status" = 'revoked';
CREATE INDEX "api_keys_by_expires_at_if_expires_at" ON "api_keys" ("expires_at", "id") WHERE "expires_at" IS NOT NULL;

CREATE TABLE "trusted_devices" (
    "token_hash" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "trusted_devices_by_user_id_created_at" ON "trusted_devices" ("user_id", "created_at", "token_hash");
CREATE INDEX "trusted_devices_by_expires_at" ON "trusted_devices" ("expires_at", "token_hash");

CREATE TABLE "passkeys" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT NOT NULL,
    "name" TEXT,
    "credential_id" TEXT NOT NULL,
    "credential" TEXT NOT NULL,
    "counter" INTEGER NOT NULL,
    "device_type" TEXT NOT NULL,
    "backed_up" INTEGER NOT NULL CHECK ("backed_up" IN (0, 1)),
    "transports" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "last_used_at" INTEGER,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "passkeys_credential" ON "passkeys" ("credential_id");
CREATE INDEX "passkeys_by_user_id_created_at" ON "passkeys" ("user_id", "created_at", "id");

CREATE TABLE "passkey_challenges" (
    "token_hash" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT,
    "state" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "passkey_challenges_by_user_id_created_at" ON "passkey_challenges" ("user_id", "created_at", "token_hash");
CREATE INDEX "passkey_challenges_by_expires_at" ON "passkey_challenges" ("expires_at", "token_hash");
