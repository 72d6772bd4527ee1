//! The tables of billing: customers, subscriptions, invoices, the journal, and those of the embedded payment provider.

use core_domain::billing::{
    AttemptStatus, BillingOperation, BillingOperationQuery, CreditGrant, CreditGrantQuery,
    CreditStatus, Currency, Customer, CustomerQuery, FeedCursor, FeedCursorQuery, Invoice,
    InvoiceQuery, InvoiceStatus, JournalEntry, JournalEntryQuery, LedgerCharge, LedgerChargeQuery,
    LedgerInvoice, LedgerInvoiceQuery, LedgerMethod, LedgerMethodQuery, LedgerSetupIntent,
    LedgerSetupIntentQuery, OperationStatus, PaymentAttempt, PaymentAttemptQuery, PlanVersion,
    PlanVersionQuery, PortalSession, PortalSessionQuery, ReceivedEvent, ReceivedEventQuery,
    ReceivedEventStatus, Subscription, SubscriptionQuery, SubscriptionStatus, TestClock,
    TestClockQuery,
};
use core_domain::kernel::CustomerId;

use crate::codec::{Bool, ColumnCodec, DecodeError, Int, Json, Opt, OrDefault, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::table::Type;
use crate::{IndexPredicate, Tabular, Value, ValueRef, table};

/// Returns the filter for the records of a customer, or none for those of all.
fn of_customer(customer: &Option<CustomerId>) -> Option<Filter> {
    let customer = customer.as_ref()?;
    Some(Filter::eq("customer_id", customer))
}

/// Encodes a currency as its code.
pub(super) enum Code {}

impl ColumnCodec<Currency> for Code {
    const TYPE: Type = Type::Text;

    fn encode(currency: &Currency) -> Value {
        Value::text(&currency.code())
    }

    fn decode(value: ValueRef<'_>) -> Result<Currency, DecodeError> {
        let code = value.as_text().ok_or(DecodeError::Type(Type::Text))?;
        Currency::parse(code).map_err(|_| DecodeError::Text("Currency"))
    }
}

const UNSENT: IndexPredicate = IndexPredicate::NotNull("unsent_since");

table! {
    Customer in "billing_customers" {
        id: Text,
        platform_id: Opt<Text>,
        user_id: Opt<Text>,
        email: Text,
        name: Opt<Text>,
        address: Opt<Json>,
        tax_id: Opt<Text>,
        spend_alert: Opt<Int>,
        currency: Code,
        balance: Int,
        credit_balance: Int,
        default_payment_method_id: Opt<Text>,
        delinquent: Bool,
        provider: Text,
        provider_id: Opt<Text>,
        created_at: Time,
        updated_at: Time,
        invoice_prefix: Text,
        invoice_count: Int,
        default_card: Opt<Json>,
        card_notice_at: Opt<Time>,
        unsent_since: Opt<Time>,
    }
    unique {
        platform: [platform_id] where [IndexPredicate::NotNull("platform_id")],
        user: [user_id] where [IndexPredicate::NotNull("user_id")],
        invoice_prefix: [invoice_prefix],
        provider: [provider_id] where [IndexPredicate::NotNull("provider_id")],
    }
    index {
        [created_at],
        [card_notice_at] where [IndexPredicate::NotNull("card_notice_at")],
        [unsent_since] where [UNSENT],
    }
    select customers
}

fn customers(query: &CustomerQuery) -> Select {
    let customers = Select::of(Customer::TABLE);
    match query {
        CustomerQuery::All => customers.order_by_desc("created_at"),
        CustomerQuery::OfPlatform(platform) => {
            customers.filter(Filter::eq("platform_id", platform))
        }
        CustomerQuery::OfUser(user) => customers.filter(Filter::eq("user_id", user)),
        CustomerQuery::WithPrefix(prefix) => customers.filter(Filter::eq("invoice_prefix", prefix)),
        CustomerQuery::WithProviderId(id) => customers.filter(Filter::eq("provider_id", id)),
        CustomerQuery::CardNoticeDue { of, by } => Select::of(Customer::TABLE)
            .filter_if(of.as_ref().map(|id| Filter::eq("id", id)))
            .filter(Filter::le("card_notice_at", *by))
            .order_by("card_notice_at"),
        CustomerQuery::Unsent => customers
            .filter(Filter::of_index(UNSENT))
            .order_by("unsent_since"),
    }
}

const LIVE: IndexPredicate = IndexPredicate::OneOf(
    "status",
    &[
        "incomplete",
        "trialing",
        "active",
        "past_due",
        "unpaid",
        "paused",
    ],
);

table! {
    Subscription in "billing_subscriptions" {
        id: Text,
        platform_id: Opt<Text>,
        customer_id: Text,
        user_id: Opt<Text>,
        tier: Text,
        plan_id: Text,
        price_id: Text,
        quantity: Int,
        status: Text,
        amount: Int,
        currency: Code,
        interval: Text,
        anchor: Time,
        current_period_start: Time,
        current_period_end: Time,
        trial_start: Opt<Time>,
        trial_ends_at: Opt<Time>,
        cancel_at_period_end: Bool,
        cancel_at: Opt<Time>,
        canceled_at: Opt<Time>,
        ended_at: Opt<Time>,
        cancellation_reason: Opt<Text>,
        pending_change: Opt<Json>,
        migration: Opt<Json>,
        default_payment_method_id: Opt<Text>,
        latest_invoice_id: Opt<Text>,
        provider: Text,
        created_at: Time,
        updated_at: Time,
        plan_version: Int,
        billed_amount: Int,
        billed_tax: Json,
        price_changed_at: Time,
        upgraded_at: Opt<Time>,
        pending_plan_version: Opt<Int>,
        unpaid_since: Opt<Time>,
        trial_notice_at: Opt<Time>,
        due_at: Opt<Time>,
    }
    unique { live: [platform_id] where [IndexPredicate::NotNull("platform_id"), LIVE] }
    index {
        [customer_id, created_at],
        [platform_id, created_at],
        // The overview groups all subscriptions by these columns.
        [status, created_at] include [tier, interval, amount],
        [due_at] where [IndexPredicate::NotNull("due_at")],
    }
    select subscriptions
}

fn subscriptions(query: &SubscriptionQuery) -> Select {
    let subscriptions = Select::of(Subscription::TABLE).order_by_desc("created_at");
    match query {
        SubscriptionQuery::All => Select::of(Subscription::TABLE),
        SubscriptionQuery::Of(customer) => {
            subscriptions.filter(Filter::eq("customer_id", customer))
        }
        SubscriptionQuery::One(customer, id) => subscriptions
            .filter(Filter::eq("id", id))
            .filter(Filter::eq("customer_id", customer)),
        SubscriptionQuery::OfPlatform(platform) => {
            subscriptions.filter(Filter::eq("platform_id", platform))
        }
        SubscriptionQuery::LiveOfPlatform(platform) => subscriptions
            .filter(Filter::eq("platform_id", platform))
            .filter(Filter::one_of("status", SubscriptionStatus::LIVE)),
        SubscriptionQuery::WithStatus(status) => subscriptions.filter(Filter::eq("status", status)),
        SubscriptionQuery::PausedOf(customer) => subscriptions
            .filter(Filter::eq("customer_id", customer))
            .filter(Filter::eq("status", &SubscriptionStatus::Paused)),
        SubscriptionQuery::Due { of, by } => Select::of(Subscription::TABLE)
            .filter_if(of_customer(of))
            .filter(Filter::le("due_at", *by))
            .order_by("due_at"),
    }
}

const OPEN_INVOICE: IndexPredicate = IndexPredicate::Is("status", "open");
const PUSHED: IndexPredicate = IndexPredicate::NotNull("provider_id");
const CLOSING: IndexPredicate = IndexPredicate::NotNull("closing_since");
const CONTRADICTED: IndexPredicate = IndexPredicate::NotNull("contradiction");

table! {
    Invoice in "billing_invoices" {
        id: Text,
        number: Opt<Text>,
        platform_id: Opt<Text>,
        customer_id: Text,
        subscription_id: Opt<Text>,
        status: Text,
        billing_reason: Text,
        currency: Code,
        period_start: Time,
        period_end: Time,
        subtotal: Int,
        discount_total: Int,
        tax_total: Int,
        total: Int,
        credits_applied: Int,
        balance_applied: Int,
        amount_due: Int,
        amount_paid: Int,
        amount_remaining: Int,
        attempt_count: Int,
        next_payment_attempt_at: Opt<Time>,
        finalized_at: Opt<Time>,
        paid_at: Opt<Time>,
        voided_at: Opt<Time>,
        marked_uncollectible_at: Opt<Time>,
        issuer: Opt<Json>,
        customer: Json,
        provider: Text,
        provider_id: Opt<Text>,
        created_at: Time,
        updated_at: Time,
        lines: Json,
        applied_credits: Json,
        due_at: Opt<Time>,
        closing_since: Opt<Time>,
        contradiction: Opt<Text>,
    }
    unique {
        number: [number] where [IndexPredicate::NotNull("number")],
        provider: [provider_id] where [IndexPredicate::NotNull("provider_id")],
    }
    index {
        [customer_id, created_at],
        [customer_id, status, created_at],
        [subscription_id, created_at] where [OPEN_INVOICE],
        [due_at] where [IndexPredicate::NotNull("due_at")],
        [period_start] include [attempt_count, amount_remaining] where [OPEN_INVOICE],
        [closing_since] where [CLOSING],
        [created_at] where [CONTRADICTED],
        [created_at] where [PUSHED],
    }
    select invoices
}

fn invoices(query: &InvoiceQuery) -> Select {
    let invoices = Select::of(Invoice::TABLE).order_by_desc("created_at");
    let open = || Filter::eq("status", &InvoiceStatus::Open);
    match query {
        InvoiceQuery::Of {
            customer_id,
            status,
        } => invoices
            .filter(Filter::eq("customer_id", customer_id))
            .filter_if(status.as_ref().map(|status| Filter::eq("status", status))),
        InvoiceQuery::One(customer, id) => invoices
            .filter(Filter::eq("id", id))
            .filter(Filter::eq("customer_id", customer)),
        InvoiceQuery::OpenOf(subscription) => invoices
            .filter(Filter::eq("subscription_id", subscription))
            .filter(open()),
        InvoiceQuery::Due { of, by } => Select::of(Invoice::TABLE)
            .filter_if(of_customer(of))
            .filter(Filter::le("due_at", *by))
            .order_by("due_at"),
        InvoiceQuery::PushedSince(at) => Select::of(Invoice::TABLE)
            .filter(Filter::of_index(PUSHED))
            .filter(Filter::ge("created_at", *at))
            .order_by("created_at"),
        InvoiceQuery::Open => Select::of(Invoice::TABLE)
            .filter(open())
            .order_by("period_start"),
        InvoiceQuery::Closing => Select::of(Invoice::TABLE)
            .filter(Filter::of_index(CLOSING))
            .order_by("closing_since"),
        InvoiceQuery::Contradicted => invoices.filter(Filter::of_index(CONTRADICTED)),
    }
}

const OPEN_ATTEMPT: IndexPredicate = IndexPredicate::OneOf("status", &["ready", "sent", "unknown"]);

table! {
    PaymentAttempt in "billing_payment_attempts" {
        id: Text,
        invoice_id: Text,
        customer_id: Text,
        number: Int,
        payment_method_id: Text,
        status: Text,
        decline_code: Opt<Text>,
        is_hard: Bool,
        created_at: Time,
        updated_at: Time,
    }
    unique {
        number: [invoice_id, number],
        open: [invoice_id] where [OPEN_ATTEMPT],
    }
    index {
        [customer_id] where [OPEN_ATTEMPT],
        [updated_at] where [OPEN_ATTEMPT],
    }
    select payment_attempts
}

fn payment_attempts(query: &PaymentAttemptQuery) -> Select {
    let attempts = Select::of(PaymentAttempt::TABLE);
    let open = || Filter::one_of("status", AttemptStatus::OPEN);
    match query {
        PaymentAttemptQuery::Of(invoice) => attempts
            .filter(Filter::eq("invoice_id", invoice))
            .order_by_desc("number"),
        PaymentAttemptQuery::OpenOf(invoice) => attempts
            .filter(Filter::eq("invoice_id", invoice))
            .filter(open()),
        PaymentAttemptQuery::OpenOfCustomer(customer) => attempts
            .filter(Filter::eq("customer_id", customer))
            .filter(open()),
        PaymentAttemptQuery::OpenSince(before) => attempts
            .filter(open())
            .filter(Filter::lt("updated_at", *before))
            .order_by("updated_at"),
        PaymentAttemptQuery::Unknown => attempts
            .filter(open())
            .filter(Filter::eq("status", &AttemptStatus::Unknown))
            .order_by("updated_at"),
    }
}

const OPEN_OPERATION: IndexPredicate = IndexPredicate::OneOf("status", &["running", "waiting"]);

table! {
    BillingOperation in "billing_operations" {
        id: Text,
        subscription_id: Text,
        customer_id: Text,
        kind: Text,
        status: Text,
        invoice_id: Text,
        tier: Text,
        plan_version: Int,
        interval: Text,
        quantity: Int,
        billed_amount: Int,
        at: Time,
        restarts_period: Bool,
        expires_at: Time,
        created_at: Time,
        updated_at: Time,
    }
    unique {
        open: [subscription_id] where [OPEN_OPERATION],
        invoice: [invoice_id],
    }
    index {
        [expires_at] where [OPEN_OPERATION],
    }
    select billing_operations
}

fn billing_operations(query: &BillingOperationQuery) -> Select {
    let operations = Select::of(BillingOperation::TABLE);
    let open = || {
        Filter::one_of(
            "status",
            &[OperationStatus::Running, OperationStatus::Waiting],
        )
    };
    match query {
        BillingOperationQuery::OpenOf(subscription) => operations
            .filter(Filter::eq("subscription_id", subscription))
            .filter(open()),
        BillingOperationQuery::WithInvoice(invoice) => {
            operations.filter(Filter::eq("invoice_id", invoice))
        }
        BillingOperationQuery::Due { of, by } => operations
            .filter_if(of_customer(of))
            .filter(open())
            .filter(Filter::le("expires_at", *by))
            .order_by("expires_at"),
    }
}

const ACTIVE_CREDIT: IndexPredicate = IndexPredicate::Is("status", "active");

table! {
    CreditGrant in "billing_credit_grants" {
        id: Text,
        customer_id: Text,
        platform_id: Opt<Text>,
        amount: Int,
        remaining: Int,
        currency: Code,
        description: Text,
        category: Text,
        priority: Int,
        effective_at: Time,
        expires_at: Opt<Time>,
        status: Text,
        created_by: Text,
        created_at: Time,
    }
    index {
        [customer_id, created_at],
        [customer_id, created_at] where [ACTIVE_CREDIT],
        [effective_at] include [remaining] where [ACTIVE_CREDIT],
        [expires_at] where [ACTIVE_CREDIT, IndexPredicate::NotNull("expires_at")],
    }
    select credit_grants
}

fn credit_grants(query: &CreditGrantQuery) -> Select {
    let credits = Select::of(CreditGrant::TABLE);
    let active = || Filter::eq("status", &CreditStatus::Active);
    match query {
        CreditGrantQuery::Of(customer) => credits
            .filter(Filter::eq("customer_id", customer))
            .order_by_desc("created_at"),
        CreditGrantQuery::Active => credits.filter(active()).order_by("effective_at"),
        CreditGrantQuery::ActiveOf(customer) => credits
            .filter(Filter::eq("customer_id", customer))
            .filter(active())
            .order_by_desc("created_at"),
        CreditGrantQuery::Due { of, by } => credits
            .filter_if(of_customer(of))
            .filter(active())
            .filter(Filter::le("expires_at", *by))
            .order_by("expires_at"),
    }
}

const CHANGES_REVENUE: IndexPredicate = IndexPredicate::NotNull("revenue");

table! {
    JournalEntry in "billing_journal_entries" {
        id: Text,
        kind: Text,
        reference: Text,
        customer_id: Text,
        postings: Json,
        at: Time,
    }
    computed {
        // NULL if the entry does not change the revenue.
        revenue: OrDefault<Int> = |entry| entry.revenue(),
    }
    unique { event: [reference, kind] }
    index {
        [at],
        [at] include [revenue] where [CHANGES_REVENUE],
        [customer_id, at],
    }
    select journal_entries
}

fn journal_entries(query: &JournalEntryQuery) -> Select {
    let entries = Select::of(JournalEntry::TABLE).order_by("at");
    match query {
        JournalEntryQuery::All => entries,
        JournalEntryQuery::Between { from, before } => entries
            .filter(Filter::ge("at", *from))
            .filter_if(before.map(|before| Filter::lt("at", before))),
        JournalEntryQuery::RevenueSince(from) => entries
            .filter(Filter::of_index(CHANGES_REVENUE))
            .filter(Filter::ge("at", *from)),
        JournalEntryQuery::About(reference) => {
            Select::of(JournalEntry::TABLE).filter(Filter::eq("reference", reference))
        }
        JournalEntryQuery::Of(customer) => entries.filter(Filter::eq("customer_id", customer)),
    }
}

table! {
    PlanVersion in "billing_plan_versions" {
        id: Text,
        digest: Text,
        terms: Json,
        created_at: Time,
    }
    select plan_versions
}

fn plan_versions(query: &PlanVersionQuery) -> Select {
    match query {
        PlanVersionQuery::All => Select::of(PlanVersion::TABLE),
    }
}

table! {
    TestClock in "billing_test_clock" {
        id: Text,
        ahead_ms: Int,
    }
    select test_clocks
}

fn test_clocks(query: &TestClockQuery) -> Select {
    match query {
        TestClockQuery::All => Select::of(TestClock::TABLE),
    }
}

table! {
    FeedCursor in "billing_feed_cursor" {
        id: Text,
        position: Int,
    }
    select feed_cursors
}

fn feed_cursors(query: &FeedCursorQuery) -> Select {
    match query {
        FeedCursorQuery::All => Select::of(FeedCursor::TABLE),
    }
}

table! {
    ReceivedEvent in "billing_received_events" {
        id: Text,
        kind: Text,
        object_id: Opt<Text>,
        customer_id: Opt<Text>,
        happened_at: Time,
        received_at: Time,
        status: Text,
    }
    index {
        [received_at],
        [received_at] where [IndexPredicate::Is("status", "received")],
    }
    select received_events
}

fn received_events(query: &ReceivedEventQuery) -> Select {
    let events = Select::of(ReceivedEvent::TABLE);
    match query {
        ReceivedEventQuery::Latest => events.order_by_desc("received_at"),
        ReceivedEventQuery::UnappliedSince(before) => events
            .filter(Filter::eq("status", &ReceivedEventStatus::Received))
            .filter(Filter::le("received_at", *before))
            .order_by("received_at"),
        ReceivedEventQuery::ReceivedBefore(before) => events
            .filter(Filter::le("received_at", *before))
            .order_by("received_at"),
    }
}

table! {
    PortalSession in "billing_portal_sessions" {
        id: Text,
        secret: Text,
        customer_id: Text,
        platform_id: Text,
        return_url: Text,
        created_at: Time,
        expires_at: Time,
    }
    index { [expires_at] }
    select portal_sessions
}

fn portal_sessions(query: &PortalSessionQuery) -> Select {
    match query {
        PortalSessionQuery::ExpiredAt(now) => Select::of(PortalSession::TABLE)
            .filter(Filter::le("expires_at", *now))
            .order_by("expires_at"),
    }
}

table! {
    LedgerMethod in "ledger_methods" {
        id: Text,
        card: Text,
        customer: Opt<Text>,
        created_at: Time,
    }
    index { [customer, created_at] }
    select ledger_methods
}

fn ledger_methods(query: &LedgerMethodQuery) -> Select {
    let methods = Select::of(LedgerMethod::TABLE).order_by_desc("created_at");
    match query {
        LedgerMethodQuery::Of(customer) => methods.filter(Filter::eq("customer", customer)),
    }
}

table! {
    LedgerSetupIntent in "ledger_setup_intents" {
        id: Text,
        secret_hash: Text,
        customer: Text,
        method_id: Opt<Text>,
        created_at: Time,
    }
    index { [created_at] }
    select ledger_setup_intents
}

fn ledger_setup_intents(query: &LedgerSetupIntentQuery) -> Select {
    let intents = Select::of(LedgerSetupIntent::TABLE);
    match query {
        LedgerSetupIntentQuery::Before(instant) => intents
            .filter(Filter::lt("created_at", *instant))
            .order_by("created_at"),
    }
}

table! {
    LedgerInvoice in "ledger_invoices" {
        id: Text,
        customer: Text,
        amount_due: Int,
        currency: Code,
        status: Text,
        created_at: Time,
    }
    select ledger_invoices
}

fn ledger_invoices(query: &LedgerInvoiceQuery) -> Select {
    match query {
        LedgerInvoiceQuery::All => Select::of(LedgerInvoice::TABLE),
    }
}

table! {
    LedgerCharge in "ledger_charges" {
        op_key: Text,
        invoice_id: Text,
        number: Int,
        method_id: Text,
        outcome: Text,
        created_at: Time,
    }
    unique { number: [invoice_id, number] }
    select ledger_charges
}

fn ledger_charges(query: &LedgerChargeQuery) -> Select {
    let charges = Select::of(LedgerCharge::TABLE).order_by_desc("number");
    match query {
        LedgerChargeQuery::Of(invoice) => charges.filter(Filter::eq("invoice_id", invoice)),
    }
}
