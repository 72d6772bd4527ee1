//! `billing.advance`: makes everything that is due for a customer, in the order of time. Each change is dated at the
//! instant at which it was due, so a late run has the same result as runs in time.
//!
//! Every change is one unit of work, during which the customer is locked. The keys of charges are derived from
//! stored attempts. So the job can be interrupted anywhere and run again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::book::CustomerBook;
use super::charge::{Charge, NewCharge, SentAttempt};
use super::due::{self, Due, DueItem};
use super::event_job::ApplyEvent;
use super::period_invoice::method_of;
use super::provider::ChargeFailure;
use super::{
    Billing, boundary, card_notice, charge, credit, invoice_state, job_failure, payment,
    subscription_state, usage_invoice,
};
use crate::access::{SystemScope, unowned_records};
use crate::billing::{AttemptStatus, PaymentAttempt, PaymentAttemptQuery};
use crate::kernel::{
    Code, Context, CustomerId, Entropy, InvoiceId, PaymentAttemptId, PlatformId, Result, Stored,
    Timestamp, Unowned,
};
use crate::port::{Mode, Store, UnitOfWork, transact, transact_in};
use crate::provisioning::{JobStatus, LaneKey};
use crate::use_case::provisioning::{
    JobInput, JobKind, JobStep, KindError, Kinds, LaneUse, Observation, StepContext, StepError,
    Steps, enqueue_many, lanes_in_use,
};

/// The number of changes after which a run makes room for the jobs of other lanes.
const CHANGES_PER_RUN: u32 = 50;

/// The most records of a kind that one run looks at.
const MAX_DUE: u32 = 10_000;

/// The number of jobs that are queued in one unit of work.
const JOBS_PER_UNIT: usize = 200;

/// The input of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdvanceInput {
    /// The customer.
    pub customer_id: CustomerId,
    /// When the first change is due.
    pub due_at: Timestamp,
    /// The version of the record that changes first.
    pub version: i64,
    /// The record that changes first: its kind and its id. Two records can be due at the same instant with the same version.
    pub record: String,
}

impl From<Due> for AdvanceInput {
    fn from(due: Due) -> Self {
        Self {
            record: due.item.record(),
            customer_id: due.customer,
            due_at: due.at,
            version: due.version,
        }
    }
}

impl JobInput for AdvanceInput {
    type Owner = Unowned;

    fn lane(&self) -> LaneKey {
        LaneKey::billing(&self.customer_id)
    }

    /// Returns `None`, because billing outlives platforms: their suspension or removal must not stop it.
    fn platform_id(&self) -> Option<&PlatformId> {
        None
    }

    fn idempotency_key(&self) -> Option<String> {
        let (customer, record) = (&self.customer_id, &self.record);
        let (due, version) = (self.due_at.millis(), self.version);
        Some(format!("{customer}:{record}:{due}:{version}"))
    }
}

/// The kind of the job.
#[derive(Clone, Debug)]
pub struct Advance {
    /// The plans and the payment provider.
    pub billing: Arc<Billing>,
    /// The source of entropy for ids.
    pub entropy: Arc<dyn Entropy>,
}

impl JobKind for Advance {
    const NAME: &'static str = "billing.advance";
    const HAS_HOOKS: bool = false;
    const DEADLINE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

    type Input = AdvanceInput;

    fn steps() -> Steps<Self> {
        Steps::new().step(Changes)
    }
}

/// Registers the job kinds of billing.
///
/// # Errors
/// [`KindError`] if a kind with one of their names is already registered.
pub fn register_kinds(
    kinds: Kinds,
    billing: &Arc<Billing>,
    entropy: &Arc<dyn Entropy>,
) -> std::result::Result<Kinds, KindError> {
    let kinds = kinds.with(Advance {
        billing: Arc::clone(billing),
        entropy: Arc::clone(entropy),
    })?;
    kinds.with(ApplyEvent {
        billing: Arc::clone(billing),
        entropy: Arc::clone(entropy),
    })
}

/// The customers for whom something is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DueCustomers {
    /// The number of customers whose jobs run or will run.
    pub running: usize,
    /// The number of customers whose jobs wait for the payment provider, or have failed.
    pub waiting: usize,
}

/// Queues a job for each customer for whom something is due now, unless one runs, is queued or waits. Call it every few
/// seconds, on any number of nodes.
///
/// # Errors
/// Only those of the store.
pub async fn queue_due(cx: &Context, store: &dyn Store, billing: &Billing) -> Result<DueCustomers> {
    let mut uow = store.begin(Mode::Read).await?;
    let found = find_due(uow.as_mut(), billing).await;
    uow.rollback().await;
    let (mut inputs, uses) = found?;
    let mut customers = DueCustomers::default();
    for used in uses.values() {
        match used {
            LaneUse::Busy => customers.running += 1,
            LaneUse::Waiting => customers.waiting += 1,
        }
    }
    inputs.retain(|input| !uses.contains_key(&input.lane()));
    for inputs in inputs.chunks(JOBS_PER_UNIT) {
        let jobs = transact(store, |uow, _| {
            Box::pin(
                async move { enqueue_many::<Advance>(cx, &SystemScope::new(), uow, inputs).await },
            )
        });
        for job in jobs.await? {
            match job.status {
                JobStatus::Queued | JobStatus::Running => customers.running += 1,
                JobStatus::Waiting | JobStatus::Failed | JobStatus::Completed => {
                    customers.waiting += 1;
                }
            }
        }
    }
    Ok(customers)
}

/// Returns the first due change of each customer, and those of their lanes that are in use.
async fn find_due(
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
) -> Result<(Vec<AdvanceInput>, BTreeMap<LaneKey, LaneUse>)> {
    let now = billing.now(uow).await?;
    let mut first = BTreeMap::new();
    for due in due::list(uow, None, now, MAX_DUE).await? {
        first.entry(due.customer.clone()).or_insert(due);
    }
    let inputs: Vec<_> = first.into_values().map(AdvanceInput::from).collect();
    let lanes: Vec<_> = inputs.iter().map(AdvanceInput::lane).collect();
    let uses = lanes_in_use(uow, Advance::NAME, &lanes).await?;
    Ok((inputs, uses))
}

/// The output of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct AdvanceOutput {
    /// The number of changes.
    changes: u32,
}

/// The only step.
#[derive(Clone, Copy, Debug)]
struct Changes;

#[async_trait]
impl JobStep<Advance> for Changes {
    const HAS_RECORD: bool = false;

    type Output = AdvanceOutput;

    fn name(&self) -> &'static str {
        "changes"
    }

    async fn observe(
        &self,
        _cx: &StepContext<'_, Advance>,
    ) -> Result<Observation<AdvanceOutput>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, Advance>) -> Result<AdvanceOutput, StepError> {
        let customer = Advancing {
            cx: Context::system(Arc::clone(&cx.kind.entropy)),
            store: cx.store,
            billing: &cx.kind.billing,
            customer: &cx.input.customer_id,
        };
        let mut changes = 0;
        loop {
            match customer.make_next_change().await? {
                Progress::Done => return Ok(AdvanceOutput { changes }),
                Progress::Interrupted(attempt) => {
                    customer.resume(&attempt).await?;
                    continue;
                }
                Progress::Changed => {}
                Progress::Charging(sent) => customer.charge(*sent).await?,
            }
            changes += 1;
            if changes == CHANGES_PER_RUN {
                return Err(StepError::unfinished(&AdvanceOutput { changes })?);
            }
            cx.guard().await?;
        }
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
}

/// The result of a unit of work that makes a change.
enum Progress {
    /// Nothing is due.
    Done,
    /// The outcome of this charge is open. Nothing else is changed before it is known.
    Interrupted(PaymentAttemptId),
    /// A change was made.
    Changed,
    /// An invoice must be charged now.
    Charging(Box<SentAttempt>),
}

/// A customer whose due changes are being made.
struct Advancing<'a> {
    cx: Context,
    store: &'a dyn Store,
    billing: &'a Billing,
    customer: &'a CustomerId,
}

impl Advancing<'_> {
    /// Makes the change that is due first, if any.
    async fn make_next_change(&self) -> Result<Progress, StepError> {
        let made = transact_in(Mode::ReadCommitted, self.store, |uow, _| {
            Box::pin(async move {
                let now = self.billing.now(uow).await?;
                let book = CustomerBook::open(uow, self.customer, now).await?;
                if let Some(attempt) = self.open_attempt(uow).await? {
                    return Ok(Progress::Interrupted(attempt));
                }
                match due::first_of(uow, self.customer, now).await? {
                    Some(due) => self.make(uow, &due, book).await,
                    None => Ok(Progress::Done),
                }
            })
        });
        match made.await {
            Err(error) if error.code() == Code::OperationInProgress => {
                let now = self.store_now().await?;
                Err(job_failure::wait_for_other_change(now))
            }
            Err(error) => {
                let now = self.store_now().await?;
                Err(job_failure::unit_error(error, now))
            }
            Ok(progress) => Ok(progress),
        }
    }

    async fn open_attempt(&self, uow: &mut dyn UnitOfWork) -> Result<Option<PaymentAttemptId>> {
        let open = PaymentAttemptQuery::OpenOfCustomer(self.customer.clone());
        let open = unowned_records::<PaymentAttempt>(uow).first(&open).await?;
        Ok(open.map(|attempt| attempt.id.clone()))
    }

    /// Makes a change, dated at the instant at which it is due.
    async fn make(
        &self,
        uow: &mut dyn UnitOfWork,
        due: &Due,
        mut book: CustomerBook,
    ) -> Result<Progress> {
        book.now = due.at;
        let (cx, billing) = (&self.cx, self.billing);
        match &due.item {
            DueItem::Credit(credit) => credit::expire(cx, uow, credit, book).await?,
            DueItem::Operation(invoice) => {
                payment::discard(cx, uow, billing, invoice, book).await?;
            }
            DueItem::Subscription(subscription) => {
                boundary::pass(cx, uow, billing, subscription, book).await?;
            }
            DueItem::Usage(period) => {
                usage_invoice::pass(cx, uow, billing, period, due.at, Some(book)).await?;
            }
            DueItem::Card => card_notice::tell(cx, uow, billing, book).await?,
            DueItem::Invoice(invoice) => return self.collect(uow, invoice, book).await,
        }
        Ok(Progress::Changed)
    }

    /// Calls the provider for a new attempt.
    async fn charge(&self, sent: SentAttempt) -> Result<(), StepError> {
        let attempt = sent.id().clone();
        let charged = charge::finish_sent(&self.cx, self.store, self.billing, sent).await;
        self.end_charge(&attempt, charged).await
    }

    /// Finds out the outcome of an interrupted attempt.
    async fn resume(&self, attempt: &PaymentAttemptId) -> Result<(), StepError> {
        let charged = charge::try_run(&self.cx, self.store, self.billing, attempt).await;
        self.end_charge(attempt, charged).await
    }

    async fn end_charge(
        &self,
        attempt: &PaymentAttemptId,
        charged: Result<Charge, ChargeFailure>,
    ) -> Result<(), StepError> {
        match charged {
            Ok(_) => Ok(()),
            Err(failure) => Err(self.step_error(failure, attempt).await?),
        }
    }

    async fn step_error(
        &self,
        failure: ChargeFailure,
        attempt: &PaymentAttemptId,
    ) -> Result<StepError, StepError> {
        let mut uow = self.store.begin(Mode::Read).await?;
        let now = uow.now().await;
        let by_billing = self.billing.now(uow.as_mut()).await;
        let attempt = unowned_records::<PaymentAttempt>(uow.as_mut())
            .get(attempt)
            .await;
        uow.rollback().await;
        let (now, attempt) = (now?, attempt?);
        let age = by_billing?.since(attempt.created_at);
        Ok(job_failure::step_error(failure, now, age))
    }

    async fn store_now(&self) -> Result<Timestamp, StepError> {
        let mut uow = self.store.begin(Mode::Read).await?;
        let now = uow.now().await;
        uow.rollback().await;
        Ok(now?)
    }

    /// Stores the attempt to charge a due invoice, unless it cannot be charged.
    async fn collect(
        &self,
        uow: &mut dyn UnitOfWork,
        invoice: &InvoiceId,
        book: CustomerBook,
    ) -> Result<Progress> {
        let (cx, billing, at) = (&self.cx, self.billing, book.now);
        let invoice = invoice_state::load(uow, invoice).await?;
        let method = match &invoice.subscription_id {
            Some(id) => {
                let subscription = subscription_state::find(uow, id).await?;
                subscription.and_then(|subscription| method_of(&subscription, &book))
            }
            None => book.customer.default_payment_method_id.clone(),
        };
        let Some(method) = method else {
            payment::fail_without_method(cx, uow, billing, invoice, book).await?;
            return Ok(Progress::Changed);
        };
        let last = charge::last_attempt(uow, &invoice.id).await?;
        let is_refused =
            |last: &Stored<PaymentAttempt>| last.is_hard && last.payment_method_id == method;
        if last.as_ref().is_some_and(is_refused) {
            payment::stop_collection(cx, uow, billing, &invoice, book).await?;
            return Ok(Progress::Changed);
        }
        // After an outage, the attempt is dated when it is made.
        let is_retry = |last: &Stored<PaymentAttempt>| {
            last.status == AttemptStatus::NotExecuted && last.created_at >= at
        };
        let at = match last.as_ref().is_some_and(is_retry) {
            true => billing.now(uow).await?,
            false => at,
        };
        let charge = NewCharge {
            invoice,
            method,
            at,
        };
        let sent = charge::send_new(cx, uow, &book, charge, last.as_deref()).await?;
        Ok(Progress::Charging(Box::new(sent)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::SubscriptionId;

    #[test]
    fn records_that_are_due_at_one_instant_with_one_version_have_jobs_of_their_own() {
        let key = |item: DueItem| {
            let due = Due {
                at: Timestamp::EPOCH,
                item,
                customer: CustomerId::parse("c1").unwrap(),
                version: 3,
            };
            AdvanceInput::from(due).idempotency_key().unwrap()
        };
        let subscription = key(DueItem::Subscription(SubscriptionId::parse("a").unwrap()));
        let invoice = key(DueItem::Invoice(InvoiceId::parse("a").unwrap()));
        let other = key(DueItem::Invoice(InvoiceId::parse("b").unwrap()));
        assert_eq!(subscription, "c1:subscription:a:0:3");
        assert_eq!(invoice, "c1:invoice:a:0:3");
        assert_ne!(invoice, other);
        assert_ne!(key(DueItem::Card), invoice);
    }
}
