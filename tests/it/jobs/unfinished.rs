//! A step that is larger than its time limit: it goes on where it was.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::access::{AuditEvent, audited};
use core_domain::kernel::Result;
use core_domain::port::{CreateResource, ResourceRef, UnitOfWork};
use core_domain::provisioning::{
    JobEvent, JobEventQuery, JobMove, JobStatus, MAX_ATTEMPTS, StepStatus,
};
use core_domain::registry::ResourceType;
use core_domain::shared::{AuditEntry, AuditQuery};
use core_domain::use_case::provisioning::{
    JobContext, JobKind, JobStep, Kinds, Observation, Outcome, StepContext, StepError, Steps,
    Unsupervised,
};
use serde_json::json;

use crate::world::{Engine, Fault, Order, Plain, on_every_store};

on_every_store! {
    Engine:
        a_step_that_has_done_a_part_goes_on_after_others_and_costs_no_attempt,
        failures_between_parts_are_counted_anew_after_each,
}

const PARTS: usize = 5;

/// Makes many objects, one an attempt.
#[derive(Debug)]
struct Large;

impl JobKind for Large {
    const NAME: &'static str = "large";
    type Input = Order;

    fn steps() -> Steps<Self> {
        Steps::new().then(MakeParts)
    }
}

#[derive(Debug)]
struct MakeParts;

impl MakeParts {
    fn part(cx: &StepContext<'_, Large>, part: usize) -> ResourceRef {
        ResourceRef {
            resource_type: ResourceType::D1,
            name: format!("{}-{part}", cx.job.id),
        }
    }
}

#[async_trait]
impl JobStep<Large> for MakeParts {
    type Output = usize;

    fn name(&self) -> &'static str {
        "parts"
    }

    async fn observe(&self, _: &StepContext<'_, Large>) -> Result<Observation<usize>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, Large>) -> Result<usize, StepError> {
        let mut part = 0;
        while cx
            .infrastructure
            .observe(&Self::part(cx, part))
            .await?
            .is_some()
        {
            part += 1;
        }
        let request = CreateResource {
            resource: Self::part(cx, part),
            owner: "test".into(),
            effect_key: format!("{}-{part}", cx.effect_key),
            config: json!({}),
        };
        cx.infrastructure.create(&request).await?;
        if part + 1 < PARTS {
            return Err(StepError::unfinished(&(part + 1))?);
        }
        Ok(PARTS)
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, Large>,
        uow: &mut dyn UnitOfWork,
        done: &usize,
    ) -> Result<()> {
        let event = AuditEvent {
            action: "part.made",
            entity_id: done.to_string(),
            ..AuditEvent::default()
        };
        audited::event(cx, uow, event).await
    }
}

async fn a_step_that_has_done_a_part_goes_on_after_others_and_costs_no_attempt(world: Engine) {
    let kinds = Kinds::new().with(Large).unwrap().with(Plain).unwrap();
    let worker = world.worker_knowing(&Arc::new(kinds));
    let id = world.enqueue::<Large>(0, None).await.unwrap();
    let (behind, other) = (world.create_plain(0).await, world.create_plain(1).await);
    let run = async || {
        world.tick(1);
        worker.run_one(&Unsupervised).await.unwrap()
    };
    assert_eq!(run().await, Outcome::Left(JobStatus::Queued));
    let job = world.job(&id).await;
    assert_eq!((job.attempts, job.run_at), (0, job.updated_at));
    assert_eq!(job.steps[0].status, StepStatus::Pending);
    assert_eq!(run().await, Outcome::Left(JobStatus::Completed));
    assert_eq!(
        world.status(&other).await,
        JobStatus::Completed,
        "others first"
    );
    for part in 2..PARTS {
        assert_eq!(run().await, Outcome::Left(JobStatus::Queued), "part {part}");
        assert_eq!(world.status(&behind).await, JobStatus::Queued, "I4");
    }
    assert_eq!(run().await, Outcome::Left(JobStatus::Completed));
    assert_eq!(world.job(&id).await.attempts, 0, "I14");
    assert_eq!(run().await, Outcome::Left(JobStatus::Completed));
    assert_eq!(world.status(&behind).await, JobStatus::Completed);
    let trace: Vec<AuditEntry> = world.list(AuditQuery::default()).await;
    let parts = trace.iter().filter(|entry| entry.action == "part.made");
    assert_eq!(
        parts.count(),
        PARTS - 1,
        "what is done is written with each release"
    );
}

/// Each part fails one time less than the job tolerates.
async fn failures_between_parts_are_counted_anew_after_each(world: Engine) {
    let kinds = Arc::new(Kinds::new().with(Large).unwrap());
    let worker = world.worker_knowing(&kinds);
    let id = world.enqueue::<Large>(0, None).await.unwrap();
    let failures = usize::try_from(MAX_ATTEMPTS).unwrap() - 1;
    // The last one comes first.
    let of_part = std::iter::once(Fault::None).chain(vec![Fault::Down; failures]);
    let all: Vec<Fault> = (0..PARTS).flat_map(|_| of_part.clone()).collect();
    let most = all.len();
    world.provider.script(all);
    for _ in 0..most {
        worker.run_one(&Unsupervised).await.unwrap();
        world.tick(300);
    }
    let job = world.job(&id).await;
    assert_eq!(job.status, JobStatus::Completed, "{job:?}");
    assert_eq!(world.provider.names().len(), PARTS);
    let history: Vec<JobEvent> = world.list(JobEventQuery::After(id, 0)).await;
    let parts = history
        .iter()
        .filter(|event| event.event_type == JobMove::Progress.as_str());
    assert_eq!(parts.count(), PARTS - 1);
}
