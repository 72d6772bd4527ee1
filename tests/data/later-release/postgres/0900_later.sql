-- release 0.2.0

ALTER TABLE "platforms" ADD COLUMN "region" TEXT COLLATE "C";
ALTER TABLE "entities" ADD COLUMN "weight" BIGINT NOT NULL DEFAULT 0;
ALTER TABLE "jobs" ADD COLUMN "region" TEXT COLLATE "C";
ALTER TABLE "sessions" ADD COLUMN "region" TEXT COLLATE "C";

CREATE TABLE "regions" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "name" TEXT COLLATE "C" NOT NULL,
    "row_version" BIGINT NOT NULL
);
