ALTER TABLE "sessions" ADD COLUMN "authenticated_at" INTEGER;

CREATE TABLE "two_factors" (
    "user_id" TEXT NOT NULL PRIMARY KEY,
    "sealed_secret" TEXT NOT NULL,
    "confirmed_at" INTEGER,
    "last_step" INTEGER,
    "recovery_codes" TEXT NOT NULL,
    "failures" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;

CREATE TABLE "two_factor_challenges" (
    "token_hash" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT NOT NULL,
    "remembered" INTEGER NOT NULL CHECK ("remembered" IN (0, 1)),
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "two_factor_challenges_by_user_id_created_at" ON "two_factor_challenges" ("user_id", "created_at", "token_hash");
CREATE INDEX "two_factor_challenges_by_expires_at" ON "two_factor_challenges" ("expires_at", "token_hash");
