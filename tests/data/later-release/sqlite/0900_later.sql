-- release 0.2.0

ALTER TABLE "platforms" ADD COLUMN "region" TEXT;
ALTER TABLE "entities" ADD COLUMN "weight" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE "jobs" ADD COLUMN "region" TEXT;
ALTER TABLE "sessions" ADD COLUMN "region" TEXT;

CREATE TABLE "regions" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "name" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "jobs_by_region" ON "jobs" ("region", "id");
CREATE INDEX "entities_by_weight" ON "entities" ("weight", "id");
