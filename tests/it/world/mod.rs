//! The environment of these tests: a store, a clock that tests control, a provider and workers; the commands of
//! operators; and suites, servers, and calls to them.

mod billing;
mod call;
mod engine;
mod kinds;
mod log;
mod platforms;
mod process;
mod provider;
mod rng;
mod stores;
mod suites;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use core_domain::access::{RecordKey, authorize_operator};
use core_domain::kernel::{Caller, Context, DlqEntryId, Entropy, JobId, Result, Stored};
use core_domain::port::{Infrastructure, Mode, Persisted, Store, UnitOfWork, Within, transact};
use core_domain::provisioning::{HoldScope, Job, JobQuery, JobStatus};
use core_domain::testing::{ManualClock, MemoryBlobs, SeededEntropy};
use core_domain::use_case::provisioning::{self, Kinds, NoSupervisor, Outcome, Worker};
use core_testkit::OpenStore;

pub(crate) use billing::BillingServer;
pub(crate) use call::Call;
pub(crate) use core_testkit::{Backend, JobCommand};
pub(crate) use engine::{Engine, FaultyEngine, lane, platform};
pub(crate) use kinds::{MakeObject, Order, Plain, Removal, STEPS, Undoable, Work, work_alone};
pub(crate) use log::Log;
pub(crate) use platforms::{Calls, Image, Platforms, as_operator};
pub(crate) use process::{Server, build_binary, checked_configuration, run, run_until};
pub(crate) use provider::{FakeProvider, Fault};
pub(crate) use rng::{Rng, now};
pub(crate) use stores::{DyingStore, YieldingStore, on_every_store};
pub(crate) use suites::{
    FRONT_PAGE, Fresh, Installation, PlatformMember, SERVICE_KEY, archive_of, sign_up,
    site_archive, suite_at_cloudflare,
};

/// The parts that a worker needs to run jobs.
pub(crate) struct World<P> {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) provider: Arc<P>,
    pub(crate) kinds: Arc<Kinds>,
    pub(crate) entropy: Arc<dyn Entropy>,
    _resources: Box<dyn Any + Send + Sync>,
}

impl<P: Infrastructure + 'static> World<P> {
    fn over(opened: OpenStore, clock: Arc<ManualClock>, provider: P, kinds: Kinds) -> Self {
        Self {
            store: opened.store,
            clock,
            provider: Arc::new(provider),
            kinds: Arc::new(kinds),
            entropy: Arc::new(SeededEntropy::new(7)),
            _resources: opened.resources,
        }
    }

    pub(crate) fn worker(&self) -> Worker {
        self.worker_knowing(&self.kinds)
    }

    pub(crate) fn worker_knowing(&self, kinds: &Arc<Kinds>) -> Worker {
        self.worker_over(Arc::clone(&self.store), kinds)
    }

    fn worker_over(&self, store: Arc<dyn Store>, kinds: &Arc<Kinds>) -> Worker {
        Worker::new(
            store,
            self.provider.clone(),
            Arc::new(MemoryBlobs::default()),
            Arc::clone(kinds),
            Arc::clone(&self.entropy),
        )
    }

    pub(crate) fn operator(&self) -> Context {
        Context {
            caller: Arc::new(Caller::Service {
                name: "operator".into(),
            }),
            ..Context::system(Arc::clone(&self.entropy))
        }
    }

    pub(crate) fn tick(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(crate) async fn find<R: Persisted>(&self, key: impl AsRef<str>) -> Option<R> {
        let mut uow = self.store.begin(Mode::Read).await.unwrap();
        find(uow.as_mut(), key).await
    }

    pub(crate) async fn list<R: Persisted>(&self, query: R::Query) -> Vec<R> {
        let mut uow = self.store.begin(Mode::Read).await.unwrap();
        list(uow.as_mut(), query).await
    }

    pub(crate) async fn insert<R: Persisted>(&self, record: R) {
        let record = &record;
        let inserted = transact(self.store.as_ref(), |uow, _| {
            Box::pin(async move {
                let records = R::repository(uow.repositories(RecordKey::for_tests()));
                Ok(records.insert(record.clone()).await?)
            })
        });
        inserted.await.unwrap();
    }

    pub(crate) async fn job(&self, id: &JobId) -> Job {
        self.find(id).await.unwrap()
    }

    pub(crate) async fn status(&self, id: &JobId) -> JobStatus {
        self.job(id).await.status
    }

    pub(crate) async fn jobs(&self) -> Vec<Job> {
        self.list(ALL_JOBS).await
    }

    /// Claims a job, if there is one, and works on it.
    pub(crate) async fn run_one(&self) -> Outcome {
        self.worker().run_one(&NoSupervisor).await.unwrap()
    }

    /// Works until every job has ended. The clock advances when no job can be claimed.
    pub(crate) async fn until_idle(&self) {
        for _ in 0..400 {
            self.worker().run_timers().await.unwrap();
            if self.run_one().await != Outcome::Idle {
                continue;
            }
            if self.jobs().await.iter().all(|job| job.status.is_terminal()) {
                return;
            }
            self.tick(31);
        }
        panic!("jobs did not end: {:?}", self.jobs().await);
    }

    /// Works on a job until the process dies after `units` units of work. Returns whether it died.
    pub(crate) async fn dies_after(&self, units: i64) -> bool {
        let dying = DyingStore::after(units, Arc::clone(&self.store));
        let worker = self.worker_over(dying, &self.kinds);
        worker.run_one(&NoSupervisor).await.is_err()
    }

    /// Works on all jobs until the process dies after `units` units of work in total. Returns whether it died.
    pub(crate) async fn dies_within(&self, units: i64) -> bool {
        let dying = DyingStore::after(units, Arc::clone(&self.store));
        let worker = self.worker_over(dying, &self.kinds);
        for _ in 0..400 {
            match worker.run_one(&NoSupervisor).await {
                Err(_) => return true,
                Ok(Outcome::Idle) => {}
                Ok(_) => continue,
            }
            if self.jobs().await.iter().all(|job| job.status.is_terminal()) {
                return false;
            }
            self.tick(6);
            self.worker().run_timers().await.unwrap();
        }
        panic!("jobs did not end: {:?}", self.jobs().await);
    }

    /// Recovers the jobs of a dead process in another process, and completes all jobs.
    pub(crate) async fn restart(&self) {
        self.worker().recover().await.unwrap();
        self.until_idle().await;
    }

    pub(crate) async fn operate(&self, command: JobCommand, job: &JobId) -> Result<Job> {
        self.operate_knowing(&self.kinds, command, job).await
    }

    /// Runs a command in a process that knows these kinds.
    pub(crate) async fn operate_knowing(
        &self,
        kinds: &Kinds,
        command: JobCommand,
        job: &JobId,
    ) -> Result<Job> {
        let (store, cx) = (self.store.as_ref(), &self.operator());
        let done = core_testkit::run_command(store, kinds, cx, command, job).await;
        Ok(done?.into_inner())
    }

    pub(crate) async fn replay(&self, kinds: &Kinds, entry: &DlqEntryId) -> Result<Job> {
        let (store, cx) = (self.store.as_ref(), &self.operator());
        let replayed = core_testkit::replay(store, kinds, cx, entry).await;
        Ok(replayed?.into_inner())
    }

    /// Sets or releases a hold.
    pub(crate) async fn hold(&self, scope: &HoldScope, on: bool) {
        self.try_hold(scope, on).await.unwrap();
    }

    /// Sets or releases a hold on a store that may fail.
    pub(crate) async fn try_hold(&self, scope: &HoldScope, on: bool) -> Result<()> {
        let cx = &self.operator();
        let operator = &authorize_operator(cx)?;
        let done = transact(self.store.as_ref(), |uow, _| {
            Box::pin(async move {
                if on {
                    return provisioning::set_operator_hold(cx, operator, uow, scope.clone(), None)
                        .await;
                }
                provisioning::lift_operator_hold(cx, operator, uow, scope.clone()).await
            })
        });
        done.await
    }
}

pub(crate) const ALL_JOBS: JobQuery = JobQuery::Of {
    platform_id: None,
    status: None,
};

pub(crate) async fn find<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    key: impl AsRef<str>,
) -> Option<R> {
    let records = R::repository(uow.repositories(RecordKey::for_tests()));
    let found = records.get(Within::Installation, key.as_ref()).await;
    found.unwrap().map(Stored::into_inner)
}

/// Returns every record that matches the query.
pub(crate) async fn list<R: Persisted>(uow: &mut dyn UnitOfWork, query: R::Query) -> Vec<R> {
    let records = R::repository(uow.repositories(RecordKey::for_tests()));
    let found = records.list(Within::Installation, &query, 20_000).await;
    let found = found.unwrap().into_iter();
    found.map(Stored::into_inner).collect()
}
