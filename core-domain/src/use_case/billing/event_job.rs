//! `billing.provider_event`: applies the state of an object at the payment provider that has changed there.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::provider::ChargeFailure;
use super::{Billing, job_failure, refund, sync};
use crate::access::{unaudited, unowned_records};
use crate::billing::{ReceivedEvent, ReceivedEventStatus};
use crate::kernel::{Code, Context, CustomerId, Entropy, PlatformId, Result, Stored, Unowned};
use crate::port::{Mode, transact};
use crate::provisioning::LaneKey;
use crate::use_case::provisioning::{
    JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps,
};

/// The object that an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// An invoice.
    Invoice,
    /// The payment methods of a customer.
    Methods,
    /// The refunds of a charge, or one refund.
    Refunds,
    /// A dispute about a payment. Its events name no customer.
    Dispute,
}

impl Subject {
    /// Returns the subject of a type of events. Returns `None` if such events change nothing here.
    pub(super) fn of(kind: &str) -> Option<Self> {
        match kind {
            "invoice.paid"
            | "invoice.payment_failed"
            | "invoice.payment_action_required"
            | "invoice.voided"
            | "invoice.marked_uncollectible" => Some(Self::Invoice),
            "charge.refunded" | "refund.updated" => Some(Self::Refunds),
            "charge.dispute.closed" => Some(Self::Dispute),
            "setup_intent.succeeded" | "customer.updated" => Some(Self::Methods),
            _ => kind.starts_with("payment_method.").then_some(Self::Methods),
        }
    }
}

/// The input of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventInput {
    /// The customer that the event is about. `None` if only the provider knows the customer.
    pub customer_id: Option<CustomerId>,
    /// The id of the event at the provider.
    pub event_id: String,
}

impl JobInput for EventInput {
    type Owner = Unowned;

    fn lane(&self) -> LaneKey {
        match &self.customer_id {
            Some(customer) => LaneKey::billing(customer),
            None => LaneKey::provider_event(&self.event_id),
        }
    }

    /// Returns `None`, because billing outlives platforms.
    fn platform_id(&self) -> Option<&PlatformId> {
        None
    }

    fn idempotency_key(&self) -> Option<String> {
        Some(self.event_id.clone())
    }
}

/// The kind of the job.
#[derive(Clone, Debug)]
pub struct ApplyEvent {
    /// The plans and the payment provider.
    pub billing: Arc<Billing>,
    /// The source of entropy for ids.
    pub entropy: Arc<dyn Entropy>,
}

impl JobKind for ApplyEvent {
    const NAME: &'static str = "billing.provider_event";
    const HAS_HOOKS: bool = false;
    const DEADLINE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

    type Input = EventInput;

    fn steps() -> Steps<Self> {
        Steps::new().step(Apply)
    }
}

/// The only step.
#[derive(Clone, Copy, Debug)]
struct Apply;

#[async_trait]
impl JobStep<ApplyEvent> for Apply {
    const HAS_RECORD: bool = false;

    type Output = ();

    fn name(&self) -> &'static str {
        "apply"
    }

    async fn observe(
        &self,
        _cx: &StepContext<'_, ApplyEvent>,
    ) -> Result<Observation<()>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, ApplyEvent>) -> Result<(), StepError> {
        let Some(event) = find(cx).await? else {
            return Ok(());
        };
        let applied = match sync_object(cx, &event).await {
            Err(ChargeFailure::Store(error)) if error.code() == Code::OperationInProgress => {
                return Err(job_failure::wait_for_other_change(now(cx).await?));
            }
            applied => applied,
        };
        if let Err(failure) = applied {
            let now = now(cx).await?;
            let age = now.since(event.received_at);
            return Err(job_failure::step_error(failure, now, age));
        }
        let mark = transact(cx.store, |uow, _| {
            Box::pin(async move {
                let events = unowned_records::<ReceivedEvent>(uow);
                let Some(seen) = events.find(&cx.input.event_id).await? else {
                    return Ok(());
                };
                let mut next = seen.edit();
                next.status = ReceivedEventStatus::Applied;
                unaudited::replace(uow, &seen, next).await.map(drop)
            })
        });
        Ok(mark.await?)
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
}

async fn find(
    cx: &StepContext<'_, ApplyEvent>,
) -> Result<Option<Stored<ReceivedEvent>>, StepError> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let event = unowned_records::<ReceivedEvent>(uow.as_mut())
        .find(&cx.input.event_id)
        .await;
    uow.rollback().await;
    let is_new = |event: &Stored<ReceivedEvent>| event.status == ReceivedEventStatus::Received;
    Ok(event?.filter(is_new))
}

async fn now(cx: &StepContext<'_, ApplyEvent>) -> Result<crate::kernel::Timestamp, StepError> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let now = uow.now().await;
    uow.rollback().await;
    Ok(now?)
}

async fn sync_object(
    cx: &StepContext<'_, ApplyEvent>,
    event: &ReceivedEvent,
) -> Result<(), ChargeFailure> {
    let (store, billing) = (cx.store, cx.kind.billing.as_ref());
    let system = Context::system(Arc::clone(&cx.kind.entropy));
    let customer = cx.input.customer_id.as_ref();
    match (Subject::of(&event.kind), customer, &event.object_id) {
        (Some(Subject::Dispute), _, _) => {
            refund::post_lost_dispute(&system, store, billing, &event.id).await
        }
        (Some(Subject::Invoice), _, Some(invoice)) => {
            sync::sync_invoice(&system, store, billing, invoice).await
        }
        (Some(Subject::Refunds), Some(customer), Some(refunded)) => {
            refund::post_refunds(&system, store, billing, customer, refunded).await
        }
        (Some(Subject::Methods), Some(customer), _) => {
            sync::sync_methods(&system, store, billing, customer).await
        }
        _ => Ok(()),
    }
}
