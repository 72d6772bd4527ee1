CREATE INDEX "outbox_messages_by_run_at_if_topic" ON "outbox_messages" ("run_at", "id") WHERE "topic" = 'mail';
