-- release 0.1.0

CREATE TABLE "cell_changes" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "table_name" TEXT NOT NULL,
    "row_key" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "cell_changes_by_platform_id" ON "cell_changes" ("platform_id", "id");
