//! Metered usage: stores events, adds them up, and keeps the usage periods. These use cases are below those of the
//! services, so that every service can report usage in its own unit of work.

mod alert;
mod clock;
mod ingest;
mod period;
mod retention;
mod terms;

pub(in crate::use_case) use alert::THRESHOLD_CROSSED;
pub use clock::BillingClock;
pub use ingest::{ingest, ingest_in};
pub use period::{CurrentPeriod, PeriodBook, current_period, new_period};
pub use retention::{MIN_EVENT_RETENTION, remove_old_events};
pub use terms::{exhausted_requests, find_plan_terms, plan_terms, price_list};

use crate::billing::PlanCatalog;

/// The plans and the clock by which usage is metered.
#[derive(Clone, Copy, Debug)]
pub struct Metering<'a> {
    /// The newest terms of all plans.
    pub plans: &'a PlanCatalog,
    /// The clock of the periods and of the age of events.
    pub clock: BillingClock,
}
