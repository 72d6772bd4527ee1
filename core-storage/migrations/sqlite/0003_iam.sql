CREATE TABLE "users" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "name" TEXT NOT NULL,
    "email" TEXT NOT NULL,
    "email_verified" INTEGER NOT NULL CHECK ("email_verified" IN (0, 1)),
    "image" TEXT,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "users_email" ON "users" ("email");

CREATE TABLE "accounts" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT NOT NULL,
    "provider" TEXT NOT NULL,
    "password_hash" TEXT,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "accounts_provider" ON "accounts" ("user_id", "provider");

CREATE TABLE "sessions" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "user_id" TEXT NOT NULL,
    "token_hash" TEXT NOT NULL,
    "active_organization_id" TEXT,
    "remembered" INTEGER NOT NULL CHECK ("remembered" IN (0, 1)),
    "ip_address" TEXT,
    "user_agent" TEXT,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "extended_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "sessions_token" ON "sessions" ("token_hash");
CREATE INDEX "sessions_by_user_id_created_at" ON "sessions" ("user_id", "created_at", "id");

CREATE TABLE "organizations" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "name" TEXT NOT NULL,
    "slug" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "platform_id" TEXT,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "organizations_slug" ON "organizations" ("slug");
CREATE UNIQUE INDEX "organizations_platform" ON "organizations" ("platform_id");
CREATE UNIQUE INDEX "organizations_operator" ON "organizations" ("kind") WHERE "kind" = 'core-operator';

CREATE TABLE "members" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "organization_id" TEXT NOT NULL,
    "user_id" TEXT NOT NULL,
    "role" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "members_user" ON "members" ("organization_id", "user_id");
CREATE INDEX "members_by_user_id_created_at" ON "members" ("user_id", "created_at", "id");

CREATE TABLE "platform_suspensions" (
    "platform_id" TEXT NOT NULL PRIMARY KEY,
    "reason" TEXT,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
