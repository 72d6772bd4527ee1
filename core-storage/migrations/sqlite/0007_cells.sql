-- release 0.1.0

CREATE TABLE "cell_platforms" (
    "platform_id" TEXT NOT NULL PRIMARY KEY,
    "cell" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;

CREATE TABLE "cell_unique_values" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "row_version" INTEGER NOT NULL
) STRICT;

CREATE TABLE "cell_decisions" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "is_committed" INTEGER NOT NULL CHECK ("is_committed" IN (0, 1)),
    "decided_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "cell_decisions_by_decided_at" ON "cell_decisions" ("decided_at", "id");
