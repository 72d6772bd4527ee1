ALTER TABLE "platform_suspensions" ADD COLUMN "by_owner" INTEGER CHECK ("by_owner" IN (0, 1));
ALTER TABLE "platform_suspensions" ADD COLUMN "by_billing" INTEGER CHECK ("by_billing" IN (0, 1));

CREATE INDEX "jobs_by_lane_if_status" ON "jobs" ("lane", "id") WHERE "status" = 'WAITING';

CREATE TABLE "billing_customers" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT,
    "user_id" TEXT,
    "email" TEXT NOT NULL,
    "name" TEXT,
    "address" TEXT,
    "tax_id" TEXT,
    "spend_alert" INTEGER,
    "currency" TEXT NOT NULL,
    "balance" INTEGER NOT NULL,
    "credit_balance" INTEGER NOT NULL,
    "default_payment_method_id" TEXT,
    "delinquent" INTEGER NOT NULL CHECK ("delinquent" IN (0, 1)),
    "provider" TEXT NOT NULL,
    "provider_id" TEXT,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "invoice_prefix" TEXT NOT NULL,
    "invoice_count" INTEGER NOT NULL,
    "default_card" TEXT,
    "card_notice_at" INTEGER,
    "unsent_since" INTEGER,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "billing_customers_platform" ON "billing_customers" ("platform_id") WHERE "platform_id" IS NOT NULL;
CREATE UNIQUE INDEX "billing_customers_user" ON "billing_customers" ("user_id") WHERE "user_id" IS NOT NULL;
CREATE UNIQUE INDEX "billing_customers_invoice_prefix" ON "billing_customers" ("invoice_prefix");
CREATE UNIQUE INDEX "billing_customers_provider" ON "billing_customers" ("provider_id") WHERE "provider_id" IS NOT NULL;
CREATE INDEX "billing_customers_by_created_at" ON "billing_customers" ("created_at", "id");
CREATE INDEX "billing_customers_by_card_notice_at_if_card_notice_at" ON "billing_customers" ("card_notice_at", "id") WHERE "card_notice_at" IS NOT NULL;
CREATE INDEX "billing_customers_by_unsent_since_if_unsent_since" ON "billing_customers" ("unsent_since", "id") WHERE "unsent_since" IS NOT NULL;

CREATE TABLE "billing_subscriptions" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT,
    "customer_id" TEXT NOT NULL,
    "user_id" TEXT,
    "tier" TEXT NOT NULL,
    "plan_id" TEXT NOT NULL,
    "price_id" TEXT NOT NULL,
    "quantity" INTEGER NOT NULL,
    "status" TEXT NOT NULL,
    "amount" INTEGER NOT NULL,
    "currency" TEXT NOT NULL,
    "interval" TEXT NOT NULL,
    "anchor" INTEGER NOT NULL,
    "current_period_start" INTEGER NOT NULL,
    "current_period_end" INTEGER NOT NULL,
    "trial_start" INTEGER,
    "trial_ends_at" INTEGER,
    "cancel_at_period_end" INTEGER NOT NULL CHECK ("cancel_at_period_end" IN (0, 1)),
    "cancel_at" INTEGER,
    "canceled_at" INTEGER,
    "ended_at" INTEGER,
    "cancellation_reason" TEXT,
    "pending_change" TEXT,
    "migration" TEXT,
    "default_payment_method_id" TEXT,
    "latest_invoice_id" TEXT,
    "provider" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "plan_version" INTEGER NOT NULL,
    "billed_amount" INTEGER NOT NULL,
    "billed_tax" TEXT NOT NULL,
    "price_changed_at" INTEGER NOT NULL,
    "upgraded_at" INTEGER,
    "pending_plan_version" INTEGER,
    "unpaid_since" INTEGER,
    "trial_notice_at" INTEGER,
    "due_at" INTEGER,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "billing_subscriptions_live" ON "billing_subscriptions" ("platform_id") WHERE "platform_id" IS NOT NULL AND "status" IN ('incomplete', 'trialing', 'active', 'past_due', 'unpaid', 'paused');
CREATE INDEX "billing_subscriptions_by_customer_id_created_at" ON "billing_subscriptions" ("customer_id", "created_at", "id");
CREATE INDEX "billing_subscriptions_by_platform_id_created_at" ON "billing_subscriptions" ("platform_id", "created_at", "id");
CREATE INDEX "billing_subscriptions_by_status_created_at" ON "billing_subscriptions" ("status", "created_at", "id");
CREATE INDEX "billing_subscriptions_by_due_at_if_due_at" ON "billing_subscriptions" ("due_at", "id") WHERE "due_at" IS NOT NULL;

CREATE TABLE "billing_invoices" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "number" TEXT,
    "platform_id" TEXT,
    "customer_id" TEXT NOT NULL,
    "subscription_id" TEXT,
    "status" TEXT NOT NULL,
    "billing_reason" TEXT NOT NULL,
    "currency" TEXT NOT NULL,
    "period_start" INTEGER NOT NULL,
    "period_end" INTEGER NOT NULL,
    "subtotal" INTEGER NOT NULL,
    "discount_total" INTEGER NOT NULL,
    "tax_total" INTEGER NOT NULL,
    "total" INTEGER NOT NULL,
    "credits_applied" INTEGER NOT NULL,
    "balance_applied" INTEGER NOT NULL,
    "amount_due" INTEGER NOT NULL,
    "amount_paid" INTEGER NOT NULL,
    "amount_remaining" INTEGER NOT NULL,
    "attempt_count" INTEGER NOT NULL,
    "next_payment_attempt_at" INTEGER,
    "finalized_at" INTEGER,
    "paid_at" INTEGER,
    "voided_at" INTEGER,
    "marked_uncollectible_at" INTEGER,
    "issuer" TEXT,
    "customer" TEXT NOT NULL,
    "provider" TEXT NOT NULL,
    "provider_id" TEXT,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "lines" TEXT NOT NULL,
    "applied_credits" TEXT NOT NULL,
    "due_at" INTEGER,
    "closing_since" INTEGER,
    "contradiction" TEXT,
    "row_version" INTEGER NOT NULL
) STRICT;
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
    "id" TEXT NOT NULL PRIMARY KEY,
    "invoice_id" TEXT NOT NULL,
    "customer_id" TEXT NOT NULL,
    "number" INTEGER NOT NULL,
    "payment_method_id" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "decline_code" TEXT,
    "is_hard" INTEGER NOT NULL CHECK ("is_hard" IN (0, 1)),
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "billing_payment_attempts_number" ON "billing_payment_attempts" ("invoice_id", "number");
CREATE UNIQUE INDEX "billing_payment_attempts_open" ON "billing_payment_attempts" ("invoice_id") WHERE "status" IN ('ready', 'sent', 'unknown');
CREATE INDEX "billing_payment_attempts_by_customer_id_if_status" ON "billing_payment_attempts" ("customer_id", "id") WHERE "status" IN ('ready', 'sent', 'unknown');
CREATE INDEX "billing_payment_attempts_by_updated_at_if_status" ON "billing_payment_attempts" ("updated_at", "id") WHERE "status" IN ('ready', 'sent', 'unknown');

CREATE TABLE "billing_operations" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "subscription_id" TEXT NOT NULL,
    "customer_id" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "invoice_id" TEXT NOT NULL,
    "tier" TEXT NOT NULL,
    "plan_version" INTEGER NOT NULL,
    "interval" TEXT NOT NULL,
    "quantity" INTEGER NOT NULL,
    "billed_amount" INTEGER NOT NULL,
    "at" INTEGER NOT NULL,
    "restarts_period" INTEGER NOT NULL CHECK ("restarts_period" IN (0, 1)),
    "expires_at" INTEGER NOT NULL,
    "created_at" INTEGER NOT NULL,
    "updated_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "billing_operations_open" ON "billing_operations" ("subscription_id") WHERE "status" IN ('running', 'waiting');
CREATE UNIQUE INDEX "billing_operations_invoice" ON "billing_operations" ("invoice_id");
CREATE INDEX "billing_operations_by_expires_at_if_status" ON "billing_operations" ("expires_at", "id") WHERE "status" IN ('running', 'waiting');

CREATE TABLE "billing_credit_grants" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "customer_id" TEXT NOT NULL,
    "platform_id" TEXT,
    "amount" INTEGER NOT NULL,
    "remaining" INTEGER NOT NULL,
    "currency" TEXT NOT NULL,
    "description" TEXT NOT NULL,
    "category" TEXT NOT NULL,
    "priority" INTEGER NOT NULL,
    "effective_at" INTEGER NOT NULL,
    "expires_at" INTEGER,
    "status" TEXT NOT NULL,
    "created_by" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "billing_credit_grants_by_customer_id_created_at" ON "billing_credit_grants" ("customer_id", "created_at", "id");
CREATE INDEX "billing_credit_grants_by_customer_id_created_at_if_status" ON "billing_credit_grants" ("customer_id", "created_at", "id") WHERE "status" = 'active';
CREATE INDEX "billing_credit_grants_by_effective_at_if_status" ON "billing_credit_grants" ("effective_at", "id") WHERE "status" = 'active';
CREATE INDEX "billing_credit_grants_by_expires_at_if_status_if_expires_at" ON "billing_credit_grants" ("expires_at", "id") WHERE "status" = 'active' AND "expires_at" IS NOT NULL;

CREATE TABLE "billing_journal_entries" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "kind" TEXT NOT NULL,
    "reference" TEXT NOT NULL,
    "customer_id" TEXT NOT NULL,
    "postings" TEXT NOT NULL,
    "at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "billing_journal_entries_event" ON "billing_journal_entries" ("reference", "kind");
CREATE INDEX "billing_journal_entries_by_at" ON "billing_journal_entries" ("at", "id");
CREATE INDEX "billing_journal_entries_by_customer_id_at" ON "billing_journal_entries" ("customer_id", "at", "id");

CREATE TABLE "billing_plan_versions" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "digest" TEXT NOT NULL,
    "terms" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;

CREATE TABLE "billing_test_clock" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "ahead_ms" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;

CREATE TABLE "billing_feed_cursor" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "position" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;

CREATE TABLE "billing_received_events" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "kind" TEXT NOT NULL,
    "object_id" TEXT,
    "customer_id" TEXT,
    "happened_at" INTEGER NOT NULL,
    "received_at" INTEGER NOT NULL,
    "status" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "billing_received_events_by_received_at" ON "billing_received_events" ("received_at", "id");
CREATE INDEX "billing_received_events_by_received_at_if_status" ON "billing_received_events" ("received_at", "id") WHERE "status" = 'received';

CREATE TABLE "billing_portal_sessions" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "secret" TEXT NOT NULL,
    "customer_id" TEXT NOT NULL,
    "platform_id" TEXT NOT NULL,
    "return_url" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "billing_portal_sessions_by_expires_at" ON "billing_portal_sessions" ("expires_at", "id");

CREATE TABLE "ledger_methods" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "card" TEXT NOT NULL,
    "customer" TEXT,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "ledger_methods_by_customer_created_at" ON "ledger_methods" ("customer", "created_at", "id");

CREATE TABLE "ledger_setup_intents" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "secret_hash" TEXT NOT NULL,
    "customer" TEXT NOT NULL,
    "method_id" TEXT,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "ledger_setup_intents_by_created_at" ON "ledger_setup_intents" ("created_at", "id");

CREATE TABLE "ledger_invoices" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "customer" TEXT NOT NULL,
    "amount_due" INTEGER NOT NULL,
    "currency" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;

CREATE TABLE "ledger_charges" (
    "op_key" TEXT NOT NULL PRIMARY KEY,
    "invoice_id" TEXT NOT NULL,
    "number" INTEGER NOT NULL,
    "method_id" TEXT NOT NULL,
    "outcome" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX "ledger_charges_number" ON "ledger_charges" ("invoice_id", "number");

CREATE TABLE "usage_events" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "source" TEXT NOT NULL,
    "event_id" TEXT NOT NULL,
    "stack_id" TEXT,
    "tenant_id" TEXT,
    "metric" TEXT NOT NULL,
    "quantity" INTEGER NOT NULL,
    "time" INTEGER NOT NULL,
    "corrects_id" TEXT,
    "received_at" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "usage_events_by_received_at" ON "usage_events" ("received_at", "id");

CREATE TABLE "usage_rollups" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "metric" TEXT NOT NULL,
    "stack_id" TEXT,
    "start" INTEGER NOT NULL,
    "quantity" INTEGER NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "usage_rollups_by_platform_id_start" ON "usage_rollups" ("platform_id", "start", "id");
CREATE INDEX "usage_rollups_by_platform_id_stack_id_start" ON "usage_rollups" ("platform_id", "stack_id", "start", "id");

CREATE TABLE "usage_totals" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "period_start" INTEGER NOT NULL,
    "sums" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "usage_totals_by_platform_id_period_start" ON "usage_totals" ("platform_id", "period_start", "id");

CREATE TABLE "usage_tenants" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "period_start" INTEGER NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "first_at" INTEGER,
    "first_stack_id" TEXT,
    "last_used_at" INTEGER NOT NULL,
    "quantities" TEXT NOT NULL,
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "usage_tenants_by_platform_id_period_start_tenant_id" ON "usage_tenants" ("platform_id", "period_start", "tenant_id", "id");

CREATE TABLE "usage_periods" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "subscription_id" TEXT,
    "customer_id" TEXT,
    "period_start" INTEGER NOT NULL,
    "period_end" INTEGER NOT NULL,
    "status" TEXT NOT NULL,
    "closes_at" INTEGER NOT NULL,
    "due_at" INTEGER,
    "invoice_id" TEXT,
    "currency" TEXT NOT NULL,
    "terms" TEXT NOT NULL,
    "billed" TEXT NOT NULL,
    "tax" TEXT,
    "is_invoice_due" INTEGER NOT NULL CHECK ("is_invoice_due" IN (0, 1)),
    "has_late_usage" INTEGER NOT NULL CHECK ("has_late_usage" IN (0, 1)),
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "usage_periods_by_platform_id_period_start" ON "usage_periods" ("platform_id", "period_start", "id");
CREATE INDEX "usage_periods_by_platform_id_period_end" ON "usage_periods" ("platform_id", "period_end", "id");
CREATE INDEX "usage_periods_by_due_at_if_due_at" ON "usage_periods" ("due_at", "id") WHERE "due_at" IS NOT NULL;
CREATE INDEX "usage_periods_by_customer_id_due_at_if_due_at" ON "usage_periods" ("customer_id", "due_at", "id") WHERE "due_at" IS NOT NULL;
CREATE INDEX "usage_periods_by_subscription_id_has_late_usage_period_6335f68c" ON "usage_periods" ("subscription_id", "has_late_usage", "period_start", "id") WHERE "status" = 'closed';
CREATE INDEX "usage_periods_by_subscription_id_is_invoice_due_period_dda3099b" ON "usage_periods" ("subscription_id", "is_invoice_due", "period_start", "id") WHERE "status" = 'closed';

CREATE TABLE "usage_alerts" (
    "id" TEXT NOT NULL PRIMARY KEY,
    "platform_id" TEXT NOT NULL,
    "metric" TEXT NOT NULL,
    "threshold" INTEGER NOT NULL,
    "quantity" INTEGER NOT NULL,
    "limit" INTEGER NOT NULL,
    "percent_used" INTEGER,
    "status" TEXT NOT NULL,
    "severity" TEXT NOT NULL,
    "period_start" INTEGER NOT NULL,
    "triggered_at" INTEGER,
    "is_told" INTEGER NOT NULL CHECK ("is_told" IN (0, 1)),
    "row_version" INTEGER NOT NULL
) STRICT;
CREATE INDEX "usage_alerts_by_platform_id_period_start" ON "usage_alerts" ("platform_id", "period_start", "id");
