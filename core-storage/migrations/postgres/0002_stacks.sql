CREATE TABLE "stack_templates" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "name" TEXT COLLATE "C" NOT NULL,
    "display_name" TEXT COLLATE "C" NOT NULL,
    "description" TEXT COLLATE "C" NOT NULL,
    "icon" TEXT COLLATE "C",
    "domain" TEXT COLLATE "C",
    "latest_version" TEXT COLLATE "C",
    "status" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "stack_templates_name" ON "stack_templates" ("name");
CREATE INDEX "stack_templates_by_created_at" ON "stack_templates" ("created_at", "id");

CREATE TABLE "stack_versions" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "template_id" TEXT COLLATE "C" NOT NULL,
    "version" TEXT COLLATE "C" NOT NULL,
    "stack_definition" TEXT COLLATE "C" NOT NULL,
    "digest" TEXT COLLATE "C" NOT NULL,
    "core_sdk_version" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "published_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "precedence" TEXT COLLATE "C" NOT NULL,
    "pre_release" BOOLEAN NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "stack_versions_version" ON "stack_versions" ("template_id", "precedence");
