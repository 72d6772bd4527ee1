DROP INDEX "platforms_by_created_at";
CREATE INDEX "platforms_by_created_at" ON "platforms" ("created_at", "id", "deleted_at");

DROP INDEX "entities_by_parent_id_created_at";
DROP INDEX "entities_by_platform_id_created_at";
CREATE INDEX "entities_by_platform_id_created_at" ON "entities" ("platform_id", "created_at", "id", "deleted_at");
CREATE INDEX "entities_by_parent_id_created_at" ON "entities" ("parent_id", "created_at", "id", "deleted_at");

DROP INDEX "resources_by_entity_id_created_at";
DROP INDEX "resources_by_platform_id_created_at";
CREATE INDEX "resources_by_platform_id_created_at" ON "resources" ("platform_id", "created_at", "id", "deleted_at");
CREATE INDEX "resources_by_entity_id_created_at" ON "resources" ("entity_id", "created_at", "id", "deleted_at");
