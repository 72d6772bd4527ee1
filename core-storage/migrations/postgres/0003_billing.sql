ALTER TABLE "platform_suspensions" ADD COLUMN "by_owner" BOOLEAN;
ALTER TABLE "platform_suspensions" ADD COLUMN "by_billing" BOOLEAN;

CREATE INDEX "jobs_by_lane_if_status" ON "jobs" ("lane", "id") WHERE "status" = 'WAITING';

CREATE TABLE "billing_customers" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C",
    "user_id" TEXT COLLATE "C",
    "email" TEXT COLLATE "C" NOT NULL,
    "name" TEXT COLLATE "C",
    "address" TEXT COLLATE "C",
    "tax_id" TEXT COLLATE "C",
    "spend_alert" BIGINT,
    "currency" TEXT COLLATE "C" NOT NULL,
    "balance" BIGINT NOT NULL,
    "credit_balance" BIGINT NOT NULL,
    "default_payment_method_id" TEXT COLLATE "C",
    "delinquent" BOOLEAN NOT NULL,
    "provider" TEXT COLLATE "C" NOT NULL,
    "provider_id" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "invoice_prefix" TEXT COLLATE "C" NOT NULL,
    "invoice_count" BIGINT NOT NULL,
    "default_card" TEXT COLLATE "C",
    "card_notice_at" BIGINT,
    "unsent_since" BIGINT,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "billing_customers_platform" ON "billing_customers" ("platform_id") WHERE "platform_id" IS NOT NULL;
CREATE UNIQUE INDEX "billing_customers_user" ON "billing_customers" ("user_id") WHERE "user_id" IS NOT NULL;
CREATE UNIQUE INDEX "billing_customers_invoice_prefix" ON "billing_customers" ("invoice_prefix");
CREATE UNIQUE INDEX "billing_customers_provider" ON "billing_customers" ("provider_id") WHERE "provider_id" IS NOT NULL;
CREATE INDEX "billing_customers_by_created_at" ON "billing_customers" ("created_at", "id");
CREATE INDEX "billing_customers_by_card_notice_at_if_card_notice_at" ON "billing_customers" ("card_notice_at", "id") WHERE "card_notice_at" IS NOT NULL;
CREATE INDEX "billing_customers_by_unsent_since_if_unsent_since" ON "billing_customers" ("unsent_since", "id") WHERE "unsent_since" IS NOT NULL;

CREATE TABLE "billing_subscriptions" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C",
    "customer_id" TEXT COLLATE "C" NOT NULL,
    "user_id" TEXT COLLATE "C",
    "tier" TEXT COLLATE "C" NOT NULL,
    "plan_id" TEXT COLLATE "C" NOT NULL,
    "price_id" TEXT COLLATE "C" NOT NULL,
    "quantity" BIGINT NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "amount" BIGINT NOT NULL,
    "currency" TEXT COLLATE "C" NOT NULL,
    "interval" TEXT COLLATE "C" NOT NULL,
    "anchor" BIGINT NOT NULL,
    "current_period_start" BIGINT NOT NULL,
    "current_period_end" BIGINT NOT NULL,
    "trial_start" BIGINT,
    "trial_ends_at" BIGINT,
    "cancel_at_period_end" BOOLEAN NOT NULL,
    "cancel_at" BIGINT,
    "canceled_at" BIGINT,
    "ended_at" BIGINT,
    "cancellation_reason" TEXT COLLATE "C",
    "pending_change" TEXT COLLATE "C",
    "migration" TEXT COLLATE "C",
    "default_payment_method_id" TEXT COLLATE "C",
    "latest_invoice_id" TEXT COLLATE "C",
    "provider" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "plan_version" BIGINT NOT NULL,
    "billed_amount" BIGINT NOT NULL,
    "billed_tax" TEXT COLLATE "C" NOT NULL,
    "price_changed_at" BIGINT NOT NULL,
    "upgraded_at" BIGINT,
    "pending_plan_version" BIGINT,
    "unpaid_since" BIGINT,
    "trial_notice_at" BIGINT,
    "due_at" BIGINT,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "billing_subscriptions_live" ON "billing_subscriptions" ("platform_id") WHERE "platform_id" IS NOT NULL AND "status" IN ('incomplete', 'trialing', 'active', 'past_due', 'unpaid', 'paused');
CREATE INDEX "billing_subscriptions_by_customer_id_created_at" ON "billing_subscriptions" ("customer_id", "created_at", "id");
CREATE INDEX "billing_subscriptions_by_platform_id_created_at" ON "billing_subscriptions" ("platform_id", "created_at", "id");
CREATE INDEX "billing_subscriptions_by_status_created_at" ON "billing_subscriptions" ("status", "created_at", "id");
CREATE INDEX "billing_subscriptions_by_due_at_if_due_at" ON "billing_subscriptions" ("due_at", "id") WHERE "due_at" IS NOT NULL;

CREATE TABLE "billing_invoices" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "number" TEXT COLLATE "C",
    "platform_id" TEXT COLLATE "C",
    "customer_id" TEXT COLLATE "C" NOT NULL,
    "subscription_id" TEXT COLLATE "C",
    "status" TEXT COLLATE "C" NOT NULL,
    "billing_reason" TEXT COLLATE "C" NOT NULL,
    "currency" TEXT COLLATE "C" NOT NULL,
    "period_start" BIGINT NOT NULL,
    "period_end" BIGINT NOT NULL,
    "subtotal" BIGINT NOT NULL,
    "discount_total" BIGINT NOT NULL,
    "tax_total" BIGINT NOT NULL,
    "total" BIGINT NOT NULL,
    "credits_applied" BIGINT NOT NULL,
    "balance_applied" BIGINT NOT NULL,
    "amount_due" BIGINT NOT NULL,
    "amount_paid" BIGINT NOT NULL,
    "amount_remaining" BIGINT NOT NULL,
    "attempt_count" BIGINT NOT NULL,
    "next_payment_attempt_at" BIGINT,
    "finalized_at" BIGINT,
    "paid_at" BIGINT,
    "voided_at" BIGINT,
    "marked_uncollectible_at" BIGINT,
    "issuer" TEXT COLLATE "C",
    "customer" TEXT COLLATE "C" NOT NULL,
    "provider" TEXT COLLATE "C" NOT NULL,
    "provider_id" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "lines" TEXT COLLATE "C" NOT NULL,
    "applied_credits" TEXT COLLATE "C" NOT NULL,
    "due_at" BIGINT,
    "closing_since" BIGINT,
    "contradiction" TEXT COLLATE "C",
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "billing_invoices_number" ON "billing_invoices" ("number") WHERE "number" IS NOT NULL;
CREATE UNIQUE INDEX "billing_invoices_provider" ON "billing_invoices" ("provider_id") WHERE "provider_id" IS NOT NULL;
CREATE INDEX "billing_invoices_by_customer_id_created_at" ON "billing_invoices" ("customer_id", "created_at", "id");
CREATE INDEX "billing_invoices_by_customer_id_status_created_at" ON "billing_invoices" ("customer_id", "status", "created_at", "id");
CREATE INDEX "billing_invoices_by_subscription_id_created_at_if_status" ON "billing_invoices" ("subscription_id", "created_at", "id") WHERE "status" = 'open';
CREATE INDEX "billing_invoices_by_due_at_if_due_at" ON "billing_invoices" ("due_at", "id") WHERE "due_at" IS NOT NULL;
CREATE INDEX "billing_invoices_by_period_start_if_status" ON "billing_invoices" ("period_start", "id") WHERE "status" = 'open';
CREATE INDEX "billing_invoices_by_closing_since_if_closing_since" ON "billing_invoices" ("closing_since", "id") WHERE "closing_since" IS NOT NULL;
CREATE INDEX "billing_invoices_by_created_at_if_contradiction" ON "billing_invoices" ("created_at", "id") WHERE "contradiction" IS NOT NULL;
CREATE INDEX "billing_invoices_by_created_at_if_provider_id" ON "billing_invoices" ("created_at", "id") WHERE "provider_id" IS NOT NULL;

CREATE TABLE "billing_payment_attempts" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "invoice_id" TEXT COLLATE "C" NOT NULL,
    "customer_id" TEXT COLLATE "C" NOT NULL,
    "number" BIGINT NOT NULL,
    "payment_method_id" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "decline_code" TEXT COLLATE "C",
    "is_hard" BOOLEAN NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "billing_payment_attempts_number" ON "billing_payment_attempts" ("invoice_id", "number");
CREATE UNIQUE INDEX "billing_payment_attempts_open" ON "billing_payment_attempts" ("invoice_id") WHERE "status" IN ('ready', 'sent', 'unknown');
CREATE INDEX "billing_payment_attempts_by_customer_id_if_status" ON "billing_payment_attempts" ("customer_id", "id") WHERE "status" IN ('ready', 'sent', 'unknown');
CREATE INDEX "billing_payment_attempts_by_updated_at_if_status" ON "billing_payment_attempts" ("updated_at", "id") WHERE "status" IN ('ready', 'sent', 'unknown');

CREATE TABLE "billing_operations" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "subscription_id" TEXT COLLATE "C" NOT NULL,
    "customer_id" TEXT COLLATE "C" NOT NULL,
    "kind" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "invoice_id" TEXT COLLATE "C" NOT NULL,
    "tier" TEXT COLLATE "C" NOT NULL,
    "plan_version" BIGINT NOT NULL,
    "interval" TEXT COLLATE "C" NOT NULL,
    "quantity" BIGINT NOT NULL,
    "billed_amount" BIGINT NOT NULL,
    "at" BIGINT NOT NULL,
    "restarts_period" BOOLEAN NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "billing_operations_open" ON "billing_operations" ("subscription_id") WHERE "status" IN ('running', 'waiting');
CREATE UNIQUE INDEX "billing_operations_invoice" ON "billing_operations" ("invoice_id");
CREATE INDEX "billing_operations_by_expires_at_if_status" ON "billing_operations" ("expires_at", "id") WHERE "status" IN ('running', 'waiting');

CREATE TABLE "billing_credit_grants" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "customer_id" TEXT COLLATE "C" NOT NULL,
    "platform_id" TEXT COLLATE "C",
    "amount" BIGINT NOT NULL,
    "remaining" BIGINT NOT NULL,
    "currency" TEXT COLLATE "C" NOT NULL,
    "description" TEXT COLLATE "C" NOT NULL,
    "category" TEXT COLLATE "C" NOT NULL,
    "priority" BIGINT NOT NULL,
    "effective_at" BIGINT NOT NULL,
    "expires_at" BIGINT,
    "status" TEXT COLLATE "C" NOT NULL,
    "created_by" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "billing_credit_grants_by_customer_id_created_at" ON "billing_credit_grants" ("customer_id", "created_at", "id");
CREATE INDEX "billing_credit_grants_by_customer_id_created_at_if_status" ON "billing_credit_grants" ("customer_id", "created_at", "id") WHERE "status" = 'active';
CREATE INDEX "billing_credit_grants_by_effective_at_if_status" ON "billing_credit_grants" ("effective_at", "id") WHERE "status" = 'active';
CREATE INDEX "billing_credit_grants_by_expires_at_if_status_if_expires_at" ON "billing_credit_grants" ("expires_at", "id") WHERE "status" = 'active' AND "expires_at" IS NOT NULL;

CREATE TABLE "billing_journal_entries" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "kind" TEXT COLLATE "C" NOT NULL,
    "reference" TEXT COLLATE "C" NOT NULL,
    "customer_id" TEXT COLLATE "C" NOT NULL,
    "postings" TEXT COLLATE "C" NOT NULL,
    "at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "billing_journal_entries_event" ON "billing_journal_entries" ("reference", "kind");
CREATE INDEX "billing_journal_entries_by_at" ON "billing_journal_entries" ("at", "id");
CREATE INDEX "billing_journal_entries_by_customer_id_at" ON "billing_journal_entries" ("customer_id", "at", "id");

CREATE TABLE "billing_plan_versions" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "digest" TEXT COLLATE "C" NOT NULL,
    "terms" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);

CREATE TABLE "billing_test_clock" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "ahead_ms" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);

CREATE TABLE "billing_feed_cursor" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "position" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);

CREATE TABLE "billing_received_events" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "kind" TEXT COLLATE "C" NOT NULL,
    "object_id" TEXT COLLATE "C",
    "customer_id" TEXT COLLATE "C",
    "happened_at" BIGINT NOT NULL,
    "received_at" BIGINT NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "billing_received_events_by_received_at" ON "billing_received_events" ("received_at", "id");
CREATE INDEX "billing_received_events_by_received_at_if_status" ON "billing_received_events" ("received_at", "id") WHERE "status" = 'received';

CREATE TABLE "billing_portal_sessions" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "secret" TEXT COLLATE "C" NOT NULL,
    "customer_id" TEXT COLLATE "C" NOT NULL,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "return_url" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "billing_portal_sessions_by_expires_at" ON "billing_portal_sessions" ("expires_at", "id");

CREATE TABLE "ledger_methods" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "card" TEXT COLLATE "C" NOT NULL,
    "customer" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "ledger_methods_by_customer_created_at" ON "ledger_methods" ("customer", "created_at", "id");

CREATE TABLE "ledger_setup_intents" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "secret_hash" TEXT COLLATE "C" NOT NULL,
    "customer" TEXT COLLATE "C" NOT NULL,
    "method_id" TEXT COLLATE "C",
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "ledger_setup_intents_by_created_at" ON "ledger_setup_intents" ("created_at", "id");

CREATE TABLE "ledger_invoices" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "customer" TEXT COLLATE "C" NOT NULL,
    "amount_due" BIGINT NOT NULL,
    "currency" TEXT COLLATE "C" NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);

CREATE TABLE "ledger_charges" (
    "op_key" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "invoice_id" TEXT COLLATE "C" NOT NULL,
    "number" BIGINT NOT NULL,
    "method_id" TEXT COLLATE "C" NOT NULL,
    "outcome" TEXT COLLATE "C" NOT NULL,
    "created_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE UNIQUE INDEX "ledger_charges_number" ON "ledger_charges" ("invoice_id", "number");

CREATE TABLE "usage_events" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "source" TEXT COLLATE "C" NOT NULL,
    "event_id" TEXT COLLATE "C" NOT NULL,
    "stack_id" TEXT COLLATE "C",
    "tenant_id" TEXT COLLATE "C",
    "metric" TEXT COLLATE "C" NOT NULL,
    "quantity" BIGINT NOT NULL,
    "time" BIGINT NOT NULL,
    "corrects_id" TEXT COLLATE "C",
    "received_at" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "usage_events_by_received_at" ON "usage_events" ("received_at", "id");

CREATE TABLE "usage_rollups" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "metric" TEXT COLLATE "C" NOT NULL,
    "stack_id" TEXT COLLATE "C",
    "start" BIGINT NOT NULL,
    "quantity" BIGINT NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "usage_rollups_by_platform_id_start" ON "usage_rollups" ("platform_id", "start", "id");
CREATE INDEX "usage_rollups_by_platform_id_stack_id_start" ON "usage_rollups" ("platform_id", "stack_id", "start", "id");

CREATE TABLE "usage_totals" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "period_start" BIGINT NOT NULL,
    "sums" TEXT COLLATE "C" NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "usage_totals_by_platform_id_period_start" ON "usage_totals" ("platform_id", "period_start", "id");

CREATE TABLE "usage_tenants" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "period_start" BIGINT NOT NULL,
    "tenant_id" TEXT COLLATE "C" NOT NULL,
    "first_at" BIGINT,
    "first_stack_id" TEXT COLLATE "C",
    "last_used_at" BIGINT NOT NULL,
    "quantities" TEXT COLLATE "C" NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "usage_tenants_by_platform_id_period_start_tenant_id" ON "usage_tenants" ("platform_id", "period_start", "tenant_id", "id");

CREATE TABLE "usage_periods" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "subscription_id" TEXT COLLATE "C",
    "customer_id" TEXT COLLATE "C",
    "period_start" BIGINT NOT NULL,
    "period_end" BIGINT NOT NULL,
    "status" TEXT COLLATE "C" NOT NULL,
    "closes_at" BIGINT NOT NULL,
    "due_at" BIGINT,
    "invoice_id" TEXT COLLATE "C",
    "currency" TEXT COLLATE "C" NOT NULL,
    "terms" TEXT COLLATE "C" NOT NULL,
    "billed" TEXT COLLATE "C" NOT NULL,
    "tax" TEXT COLLATE "C",
    "is_invoice_due" BOOLEAN NOT NULL,
    "has_late_usage" BOOLEAN NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "usage_periods_by_platform_id_period_start" ON "usage_periods" ("platform_id", "period_start", "id");
CREATE INDEX "usage_periods_by_platform_id_period_end" ON "usage_periods" ("platform_id", "period_end", "id");
CREATE INDEX "usage_periods_by_due_at_if_due_at" ON "usage_periods" ("due_at", "id") WHERE "due_at" IS NOT NULL;
CREATE INDEX "usage_periods_by_customer_id_due_at_if_due_at" ON "usage_periods" ("customer_id", "due_at", "id") WHERE "due_at" IS NOT NULL;
CREATE INDEX "usage_periods_by_subscription_id_has_late_usage_period_6335f68c" ON "usage_periods" ("subscription_id", "has_late_usage", "period_start", "id") WHERE "status" = 'closed';
CREATE INDEX "usage_periods_by_subscription_id_is_invoice_due_period_dda3099b" ON "usage_periods" ("subscription_id", "is_invoice_due", "period_start", "id") WHERE "status" = 'closed';

CREATE TABLE "usage_alerts" (
    "id" TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    "platform_id" TEXT COLLATE "C" NOT NULL,
    "metric" TEXT COLLATE "C" NOT NULL,
    "threshold" BIGINT NOT NULL,
    "quantity" BIGINT NOT NULL,
    "limit" BIGINT NOT NULL,
    "percent_used" BIGINT,
    "status" TEXT COLLATE "C" NOT NULL,
    "severity" TEXT COLLATE "C" NOT NULL,
    "period_start" BIGINT NOT NULL,
    "triggered_at" BIGINT,
    "is_told" BOOLEAN NOT NULL,
    "row_version" BIGINT NOT NULL
);
CREATE INDEX "usage_alerts_by_platform_id_period_start" ON "usage_alerts" ("platform_id", "period_start", "id");
