ALTER TABLE "sessions" ADD COLUMN "authenticated_at" BIGINT;

CREATE TABLE "two_factors" (
    "user_id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "sealed_secret" TEXT COLLATE "C" NOT NULL,
    "confirmed_at" BIGINT,
    "last_step" BIGINT,
    "recovery_codes" TEXT COLLATE "C" NOT NULL,
    "failures" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);

CREATE TABLE "two_factor_challenges" (
    "token_hash" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "user_id" TEXT COLLATE "C" NOT NULL,
    "remembered" BOOLEAN NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "two_factor_challenges_by_user_id_created_at" ON "two_factor_challenges" ("user_id", "created_at", "token_hash");
CREATE INDEX "two_factor_challenges_by_expires_at" ON "two_factor_challenges" ("expires_at", "token_hash");
