CREATE TABLE "maintenance_leases" (
    "task" TEXT NOT NULL PRIMARY KEY,
    "holder" TEXT NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
