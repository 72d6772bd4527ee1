//! The metrics of jobs, deliveries, the store and the backlog.

use async_trait::async_trait;
use core_suite::jobs::{
    JobInput, JobKind, JobStep, LaneKey, Observation, PlatformId, StepContext, StepError, Steps,
    Unowned,
};
use core_suite::{Suite, SuiteBuilder, SuiteService};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::exposition::{Exposition, until};
use crate::world::{Backend, Call, Fresh, Installation, SERVICE_KEY, sign_up};

/// The input of a job whose step succeeds or fails.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Chore {
    number: u32,
    fails: bool,
}

impl JobInput for Chore {
    type Owner = Unowned;

    fn lane(&self) -> LaneKey {
        LaneKey::host(&format!("chore-{}", self.number))
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        None
    }
}

#[derive(Debug)]
struct Chores;

impl JobKind for Chores {
    const NAME: &'static str = "chore";
    const HAS_HOOKS: bool = false;
    type Input = Chore;

    fn steps() -> Steps<Self> {
        Steps::new().step(First).step(Second)
    }
}

#[derive(Debug)]
struct First;

#[async_trait]
impl JobStep<Chores> for First {
    const HAS_RECORD: bool = false;
    type Output = u32;

    fn name(&self) -> &'static str {
        "first"
    }

    async fn observe(&self, cx: &StepContext<'_, Chores>) -> Result<Observation<u32>, StepError> {
        Ok(Observation::Present(cx.input.number))
    }

    async fn apply(&self, cx: &StepContext<'_, Chores>) -> Result<u32, StepError> {
        Ok(cx.input.number)
    }
}

#[derive(Debug)]
struct Second;

#[async_trait]
impl JobStep<Chores> for Second {
    const HAS_RECORD: bool = false;
    type Output = u32;

    fn name(&self) -> &'static str {
        "second"
    }

    async fn observe(&self, _: &StepContext<'_, Chores>) -> Result<Observation<u32>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, Chores>) -> Result<u32, StepError> {
        match cx.input.fails {
            true => Err(StepError::permanent("BROKEN", "the tool broke")),
            false => Ok(cx.input.number),
        }
    }
}

async fn suite(
    backend: Backend,
    change: impl FnOnce(SuiteBuilder) -> SuiteBuilder,
) -> (Fresh, Suite) {
    let fresh = Fresh::on(backend).await;
    let suite = change(fresh.builder.clone().job_kind(Chores)).build().await;
    (fresh, suite.unwrap())
}

#[tokio::test]
async fn jobs_are_counted_by_kind_and_outcome_and_a_dead_letter_is_shown() {
    let (_fresh, suite) = suite(Backend::Memory, |builder| builder).await;
    let metrics = suite.metrics();
    for number in 0..5 {
        let fails = number == 4;
        let job = suite
            .jobs()
            .enqueue::<Chores>(&Chore { number, fails })
            .await;
        suite.jobs().wait_until_ended(&job.unwrap()).await.unwrap();
    }
    metrics.refresh().await;
    suite.shutdown().await;

    let seen = Exposition::of(&metrics);
    let of_kind = |name: &str| seen.sum(name, &[("kind", "chore")]);
    assert_eq!(of_kind("core_jobs_claimed_total"), 5.0);
    for (outcome, expected) in [
        ("completed", 4.0),
        ("failed", 1.0),
        ("retried", 0.0),
        ("waiting", 0.0),
    ] {
        let labels = [("kind", "chore"), ("outcome", outcome)];
        assert_eq!(
            seen.sum("core_jobs_ended_total", &labels),
            expected,
            "{outcome}"
        );
    }
    assert_eq!(of_kind("core_job_step_duration_seconds_count"), 10.0);
    assert_eq!(seen.sum("core_dead_letters", &[("status", "PENDING")]), 1.0);
    assert_eq!(seen.sum("core_dead_letters", &[]), 1.0);
    for status in ["QUEUED", "RUNNING", "WAITING"] {
        assert_eq!(
            seen.sum("core_jobs", &[("status", status)]),
            0.0,
            "{status}"
        );
    }
    assert_eq!(seen.sum("core_worker_slots", &[("state", "in-use")]), 0.0);
    assert_eq!(seen.sum("core_worker_slots", &[("state", "free")]), 128.0);
    assert_eq!(seen.sum("core_job_leases_lost_total", &[]), 0.0);
}

#[tokio::test]
async fn the_backlog_shows_jobs_that_no_worker_claims() {
    for backend in Backend::ALL {
        // Where units of work run at the same time, a claim that has begun does not see the hold. Such stores allow a
        // process without slots.
        let is_shared = !matches!(backend, Backend::Memory | Backend::Sqlite);
        let change = |builder: SuiteBuilder| match is_shared {
            true => builder.worker_slots(0),
            false => builder,
        };
        let (_fresh, suite) = suite(backend, change).await;
        let metrics = suite.metrics();
        let hold = Call::post("/api/v1/provision/holds", &json!({ "scope": "all" }));
        let hold = hold.bearer(SERVICE_KEY);
        let _ = suite.send("provisioning", hold).await.expect(201);
        for number in 0..3 {
            let chore = Chore {
                number,
                fails: false,
            };
            suite.jobs().enqueue::<Chores>(&chore).await.unwrap();
        }
        let age = || Exposition::of(&metrics).sum("core_jobs_oldest_ready_age_seconds", &[]);
        metrics.refresh().await;
        // The clock of the store has a resolution of a millisecond.
        while age() == 0.0 {
            metrics.refresh().await;
        }
        assert!(age() < 60.0, "{backend:?}");
        let seen = Exposition::of(&metrics);
        for (name, label, value, expected) in [
            ("core_jobs", "status", "QUEUED", 3.0),
            ("core_jobs", "status", "RUNNING", 0.0),
            ("core_job_lanes", "state", "ready", 3.0),
            ("core_job_lanes", "state", "scheduled", 0.0),
        ] {
            let number = seen.sum(name, &[(label, value)]);
            assert_eq!(number, expected, "{backend:?}: {name} {value}");
        }
        let ended = seen.sum("core_jobs_ended_total", &[]);
        assert_eq!(ended, 0.0, "{backend:?}");
        assert_eq!(seen.sum("core_store_healthy", &[]), 1.0, "{backend:?}");
        let failures = seen.sum("core_backlog_refresh_failures_total", &[]);
        assert_eq!(failures, 0.0, "{backend:?}");
        suite.shutdown().await;
    }
}

#[tokio::test]
async fn mails_and_audit_entries_are_counted_when_they_are_done() {
    let (_fresh, suite) = suite(Backend::Memory, |builder| builder).await;
    let metrics = suite.metrics();
    sign_up(&suite, "engines", "Analytical Engines").await;
    let link = json!({ "email": "engines@example.org" });
    let link = Call::post("/api/auth/sign-in/magic-link", &link);
    let _ = suite.send("iam", link).await.expect(200);
    let mail = [("queue", "mails"), ("outcome", "delivered")];
    until(&metrics, |seen| {
        seen.sum("core_delivery_attempts_total", &mail) == 1.0
            && seen.sum("core_audit_entries_sealed_total", &[]) >= 2.0
    })
    .await;
    suite.shutdown().await;
    let seen = Exposition::of(&metrics);
    let mails = [("queue", "mails")];
    assert_eq!(
        seen.sum("core_delivery_duration_seconds_count", &mails),
        1.0
    );
    assert_eq!(seen.sum("core_deliveries_in_progress", &[]), 0.0);
    metrics.refresh().await;
    let seen = Exposition::of(&metrics);
    assert_eq!(seen.sum("core_deliveries_pending", &mails), 0.0);
    assert_eq!(seen.sum("core_audit_seal_lag_seconds", &[]), 0.0);
}

#[tokio::test]
async fn units_of_work_and_connections_are_measured_on_every_store() {
    for (backend, pools) in [
        (Backend::Memory, &[][..]),
        (Backend::Sqlite, &["sqlite-readers", "sqlite-writer"]),
        (Backend::Postgres, &["postgres"]),
        (Backend::Sqlx, &["sqlx"]),
        (Backend::Cells, &["a-postgres", "b-postgres", "postgres"]),
    ] {
        let (_fresh, suite) = suite(backend, |builder| builder).await;
        let metrics = suite.metrics();
        let before = Exposition::of(&metrics);
        let body = json!({ "name": "A platform", "slug": "a-platform" });
        let create = Call::post("/api/v1/platforms", &body).bearer(SERVICE_KEY);
        let _ = suite.send("registry", create).await.expect(201);
        let seen = Exposition::of(&metrics);
        let written = [("mode", "write"), ("outcome", "committed")];
        let units = |seen: &Exposition| seen.sum("core_store_units_total", &written);
        assert!(units(&seen) > units(&before), "{backend:?}");
        assert!(seen.sum("core_store_commit_duration_seconds_count", &[]) >= units(&seen));
        for pool in pools {
            assert!(
                seen.sum("core_store_pool_limit", &[("pool", pool)]) >= 1.0,
                "{pool}"
            );
        }
        let limits = seen
            .0
            .iter()
            .filter(|series| series.name == "core_store_pool_limit");
        assert_eq!(limits.count(), pools.len(), "{backend:?}");
        suite.shutdown().await;
        let seen = Exposition::of(&metrics);
        assert_eq!(seen.sum("core_store_units_open", &[]), 0.0, "{backend:?}");
    }
}

#[tokio::test]
async fn every_metric_has_series_once_a_suite_has_worked() {
    // The metrics of a service over HTTP have series only if there is one.
    let with_remote =
        |builder: SuiteBuilder| builder.remote_service(SuiteService::Stacks, "http://127.0.0.1:9");
    let (_fresh, suite) = suite(Backend::Sqlite, with_remote).await;
    let metrics = suite.metrics();
    let _ = suite
        .send("gateway", Call::get("/api/v1/platforms"))
        .await
        .expect(401);
    let _ = suite
        .send("registry", Call::get("/nowhere").bearer(SERVICE_KEY))
        .await
        .expect(404);
    let _ = suite
        .get(SERVICE_KEY, "/api/v1/platforms")
        .await
        .expect(200);
    let chore = Chore {
        number: 1,
        fails: false,
    };
    let job = suite.jobs().enqueue::<Chores>(&chore).await.unwrap();
    suite.jobs().wait_until_ended(&job).await.unwrap();
    metrics.refresh().await;
    let names = metrics.descriptions().into_iter().map(|known| known.name);
    // This one has series only if there are cells, see the tests of an outage of a cell.
    let names = names.filter(|name| *name != "core_store_cell_reached");
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 50);
    // The sweeper asks the payment provider for missed events at the start, in the background.
    until(&metrics, |seen| {
        let has_series = |name: &&str| {
            let parts = [(*name).to_owned(), format!("{name}_count")];
            seen.0.iter().any(|series| parts.contains(&series.name))
        };
        names.iter().all(has_series)
    })
    .await;
    suite.shutdown().await;
}
