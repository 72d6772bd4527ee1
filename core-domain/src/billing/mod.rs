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
mod journal;
mod metric;
mod money;
mod plan;
mod proration;
mod settlement;
mod unit_price;

pub use calendar::{Anchor, Interval, Period};
pub use change::{ChangeAmounts, ChangeDirection, PlannedChange, Recurring};
pub use journal::{Account, CreditSource, Entry, EntryKind, JournalError, Posting, TrialBalance};
pub use metric::{Aggregation, Metric};
pub use money::{Currency, Money, MoneyError, divide_rounded};
pub use plan::{
    MAX_TRIAL_DAYS, MetricTerms, Plan, PlanCatalog, PlanError, PlanLimits, PlanMetric, PlanTerms,
    PlanTier, ensure_unchanged,
};
pub use proration::{Proration, split_by_largest_remainder};
pub use settlement::{Bill, Settlement};
pub use unit_price::{UnitPrice, UnitPriceError};
