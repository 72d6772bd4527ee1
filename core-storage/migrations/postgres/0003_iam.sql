CREATE TABLE "users" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "name" TEXT COLLATE "C" NOT NULL,
    "email" TEXT COLLATE "C" NOT NULL,
    "email_verified" BOOLEAN NOT NULL,
    "image" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "users_email" ON "users" ("email");

CREATE TABLE "accounts" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "user_id" TEXT COLLATE "C" NOT NULL,
    "provider" TEXT COLLATE "C" NOT NULL,
    "password_hash" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "accounts_provider" ON "accounts" ("user_id", "provider");

CREATE TABLE "sessions" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "user_id" TEXT COLLATE "C" NOT NULL,
    "token_hash" TEXT COLLATE "C" NOT NULL,
    "active_organization_id" TEXT COLLATE "C",
    "remembered" BOOLEAN NOT NULL,
    "ip_address" TEXT COLLATE "C",
    "user_agent" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "extended_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "sessions_token" ON "sessions" ("token_hash");
CREATE INDEX "sessions_by_user_id_created_at" ON "sessions" ("user_id", "created_at", "id");

CREATE TABLE "organizations" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "name" TEXT COLLATE "C" NOT NULL,
    "slug" TEXT COLLATE "C" NOT NULL,
    "kind" TEXT COLLATE "C" NOT NULL,
    "platform_id" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "organizations_slug" ON "organizations" ("slug");
CREATE UNIQUE INDEX "organizations_platform" ON "organizations" ("platform_id");
CREATE UNIQUE INDEX "organizations_operator" ON "organizations" ("kind") WHERE "kind" = 'core-operator';

CREATE TABLE "members" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "organization_id" TEXT COLLATE "C" NOT NULL,
    "user_id" TEXT COLLATE "C" NOT NULL,
    "role" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "members_user" ON "members" ("organization_id", "user_id");
CREATE INDEX "members_by_user_id_created_at" ON "members" ("user_id", "created_at", "id");

CREATE TABLE "platform_suspensions" (
    "platform_id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "reason" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
