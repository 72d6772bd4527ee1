CREATE TABLE "maintenance_leases" (
    "task" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "holder" TEXT COLLATE "C" NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
