-- release 0.1.0

CREATE TABLE "cell_platforms" (
    "platform_id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "cell" TEXT COLLATE "C" NOT NULL,
    "row_version" BIGINT NOT NULL
);

CREATE TABLE "cell_unique_values" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "row_version" BIGINT NOT NULL
);

CREATE TABLE "cell_decisions" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "is_committed" BOOLEAN NOT NULL,
    "decided_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "cell_decisions_by_decided_at" ON "cell_decisions" ("decided_at", "id");
