CREATE TABLE "stack_templates" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "name" TEXT NOT NULL,
    "display_name" TEXT NOT NULL,
    "description" TEXT NOT NULL,
    "icon" TEXT,
    "domain" TEXT,
    "latest_version" TEXT,
    "status" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "stack_templates_name" ON "stack_templates" ("name");
CREATE INDEX "stack_templates_by_created_at" ON "stack_templates" ("created_at", "id");

CREATE TABLE "stack_versions" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "template_id" TEXT NOT NULL,
    "version" TEXT NOT NULL,
    "stack_definition" TEXT NOT NULL,
    "digest" TEXT NOT NULL,
    "core_sdk_version" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "published_at" INTEGER NOT NULL,
    "created_at" INTEGER NOT NULL,
    "precedence" TEXT NOT NULL,
    "pre_release" INTEGER NOT NULL CHECK ("pre_release" IN (0, 1)),
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "stack_versions_version" ON "stack_versions" ("template_id", "precedence");
