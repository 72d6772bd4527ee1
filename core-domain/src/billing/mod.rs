//! Billing: customers, subscriptions, invoices, usage and the journal.
//!
//! Money is exact. An amount is a whole number of minor units of one currency, intermediate results are 128 bits wide,
//! and [`divide_rounded`] is the only division. There are no floating-point numbers. Instants are whole seconds of UTC,
//! and a period contains its start but not its end.
//!
//! Two words have a fixed meaning: the *journal* is the double-entry book, and the *ledger* is the embedded payment
//! provider.
#![deny(clippy::float_arithmetic)]

mod calendar;
mod change;
mod credit_grant;
mod customer;
mod day;
mod feed_cursor;
mod invoice;
mod journal;
mod journal_check;
mod journal_entry;
mod journal_line;
mod ledger;
mod metric;
mod money;
mod operation;
mod overview;
mod party;
mod payment_attempt;
mod payment_method;
mod plan;
mod plan_migration;
mod plan_version;
mod portal_session;
mod proration;
mod received_event;
mod settlement;
mod subscription;
mod tax;
mod test_clock;
mod unit_price;
pub mod usage;

pub use calendar::{Anchor, Interval, Period};
pub use change::{ChangeAmounts, ChangeDirection, PlannedChange, Recurring};
pub use credit_grant::{
    CreditCategory, CreditDescription, CreditEvent, CreditGrant, CreditGrantQuery, CreditStatus,
    GrantCredit,
};
pub use customer::{CreateCustomer, Customer, CustomerQuery, UpdateCustomer};
pub use day::{Day, DayError};
pub use feed_cursor::{FeedCursor, FeedCursorQuery};
pub use invoice::{
    AppliedCredit, BillingReason, Invoice, InvoiceEvent, InvoiceLine, InvoiceQuery, InvoiceStatus,
    LineProration, LineType, TaxSum,
};
pub use journal::{
    Account, CreditSource, Entry, EntryKind, JournalError, Posting, TrialBalance, Turnover,
};
pub use journal_check::{CustomerCheck, JournalDifference};
pub use journal_entry::{JournalEntry, JournalEntryQuery, StoredPosting};
pub use journal_line::{JournalLine, JournalLineAccount};
pub use ledger::{
    LedgerCharge, LedgerChargeQuery, LedgerInvoice, LedgerInvoiceQuery, LedgerInvoiceStatus,
    LedgerMethod, LedgerMethodQuery, LedgerOutcome, LedgerSetupIntent, LedgerSetupIntentQuery,
    TestCard,
};
pub use metric::{Aggregation, Metric};
pub use money::{Currency, Money, MoneyError, divide_rounded};
pub use operation::{
    BillingOperation, BillingOperationQuery, OperationEvent, OperationKind, OperationStatus,
    TIME_TO_PAY,
};
pub use overview::{InvoiceSum, Overview, SubscriptionGroup, WebhookState};
pub use party::{Address, Country, NewAddress, Party, TaxId};
pub use payment_attempt::{
    AttemptEvent, AttemptStatus, PaymentAttempt, PaymentAttemptQuery, collection_ends_at,
    next_attempt_after,
};
pub use payment_method::{Card, PaymentMethod, PaymentMethodType, PaymentProvider};
pub use plan::{
    MAX_TRIAL_DAYS, MetricTerms, Plan, PlanCatalog, PlanError, PlanLimits, PlanMetric, PlanTerms,
    PlanTier, ensure_unchanged,
};
pub use plan_migration::PlanMigration;
pub use plan_version::{PlanVersion, PlanVersionName, PlanVersionNameError, PlanVersionQuery};
pub use portal_session::{PortalSecret, PortalSession, PortalSessionQuery};
pub use proration::{Proration, split_by_largest_remainder};
pub use received_event::{ReceivedEvent, ReceivedEventQuery, ReceivedEventStatus};
pub use settlement::{Bill, Settlement};
pub use subscription::{
    PendingChange, Price, Subscription, SubscriptionEvent, SubscriptionQuery, SubscriptionStatus,
};
pub use tax::{LineTax, REVERSE_CHARGE_NOTE, TaxError, TaxRate, TaxTable, TaxTreatment};
pub use test_clock::{TestClock, TestClockQuery};
pub use unit_price::{UnitPrice, UnitPriceError};
