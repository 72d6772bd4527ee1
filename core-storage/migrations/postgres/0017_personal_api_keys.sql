ALTER TABLE "api_keys" ALTER COLUMN "organization_id" DROP NOT NULL;
ALTER TABLE "api_keys" ALTER COLUMN "platform_id" DROP NOT NULL;
