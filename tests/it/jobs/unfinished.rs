//! A step that is longer than its time limit continues where it stopped.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::access::{AuditEvent, audited};
use core_domain::kernel::Result;
use core_domain::port::{ObjectRequest, ResourceRef, UnitOfWork};
use core_domain::provisioning::{
    JobEvent, JobEventQuery, JobStatus, JobTransition, MAX_ATTEMPTS, StepStatus,
};
use core_domain::registry::ResourceType;
use core_domain::shared::{AuditEntry, AuditQuery};
use core_domain::use_case::provisioning::{
    JobContext, JobKind, JobStep, Kinds, NoSupervisor, Observation, Outcome, StepContext,
    StepError, Steps,
};
use serde_json::json;

use crate::world::{Engine, Fault, Order, Plain, on_every_store};

on_every_store! {
    Engine:
        an_unfinished_step_continues_after_other_lanes_without_counting_an_attempt,
        progress_resets_the_count_of_failures,
}

const PARTS: usize = 5;

/// A kind whose step creates many objects, one per attempt.
#[derive(Debug)]
struct Large;

impl JobKind for Large {
    const NAME: &'static str = "large";
    type Input = Order;

    fn steps() -> Steps<Self> {
        Steps::new().step(MakeParts)
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
        let request = ObjectRequest {
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
        audited::record_event(cx, uow, event).await
    }
}

async fn an_unfinished_step_continues_after_other_lanes_without_counting_an_attempt(world: Engine) {
    let kinds = Kinds::new().with(Large).unwrap().with(Plain).unwrap();
    let worker = world.worker_knowing(&Arc::new(kinds));
    let id = world.enqueue::<Large>(0, None).await.unwrap();
    let (behind, other) = (world.create_plain(0).await, world.create_plain(1).await);
    let run = async || {
        world.tick(1);
        worker.run_one(&NoSupervisor).await.unwrap()
    };
    assert_eq!(run().await, Outcome::Left(JobStatus::Queued));
    let job = world.job(&id).await;
    assert_eq!((job.attempts, job.run_at), (0, job.updated_at));
    assert_eq!(job.steps[0].status, StepStatus::Pending);
    assert_eq!(run().await, Outcome::Left(JobStatus::Completed));
    assert_eq!(
        world.status(&other).await,
        JobStatus::Completed,
        "other lanes run first"
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
        "the progress is recorded with each release"
    );
}

/// Each part fails one time less than the job tolerates.
async fn progress_resets_the_count_of_failures(world: Engine) {
    let kinds = Arc::new(Kinds::new().with(Large).unwrap());
    let worker = world.worker_knowing(&kinds);
    let id = world.enqueue::<Large>(0, None).await.unwrap();
    let failures = usize::try_from(MAX_ATTEMPTS).unwrap() - 1;
    // The script is read from its end.
    let of_part = std::iter::once(Fault::None).chain(vec![Fault::Down; failures]);
    let all: Vec<Fault> = (0..PARTS).flat_map(|_| of_part.clone()).collect();
    let most = all.len();
    world.provider.script(all);
    for _ in 0..most {
        worker.run_one(&NoSupervisor).await.unwrap();
        world.tick(300);
    }
    let job = world.job(&id).await;
    assert_eq!(job.status, JobStatus::Completed, "{job:?}");
    assert_eq!(world.provider.names().len(), PARTS);
    let history: Vec<JobEvent> = world.list(JobEventQuery::After(id, 0)).await;
    let parts = history
        .iter()
        .filter(|event| event.event_type == JobTransition::Progress.as_str());
    assert_eq!(parts.count(), PARTS - 1);
}
