//! F2: SIGSTOP freezes a worker until after its lease, another worker finishes its job, and then the first one
//! continues.

use serde_json::Value;

use super::site::{ProvisioningJob, SHORT_LEASES, Site, in_time};
use crate::world::{Backend, Server};

/// A frozen transaction keeps its locks until Postgres aborts it.
const SHORT_TRANSACTIONS: [&str; 2] = ["--set", "settings.pool.postgres_idle_timeout=2s"];

/// Starts a server with a slow provider, so that it can be frozen before or after an effect.
async fn slow_server(site: &Site) -> Server {
    let mut arguments = vec!["--local-latency-ms", "900"];
    arguments.extend(SHORT_TRANSACTIONS);
    arguments.extend(SHORT_LEASES);
    site.start(&arguments).await
}

/// Freezes a server while it does not hold the lock of its provider. Otherwise the other server would wait for that
/// lock forever.
async fn freeze(site: &Site, server: &Server) {
    let lock = site.data.path().join("infrastructure/.lock");
    let lock = std::fs::File::options().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    server.signal("STOP").await;
}

/// A server that was frozen after a number of effects, and continues after another server has finished its job.
struct ResumedServer {
    site: Site,
    server: Server,
    queued: [ProvisioningJob; 1],
    /// The job as the other server finished it.
    jobs: Vec<Value>,
}

impl ResumedServer {
    async fn after(effects: usize) -> Self {
        let site = Site::on(Backend::Postgres).await;
        let server = slow_server(&site).await;
        let queued = [ProvisioningJob::on(&server, "engines").await];
        queued[0].wait_until_running(&server).await;
        in_time(async {
            while site.objects(&queued[0]) < effects {
                tokio::task::yield_now().await;
            }
        })
        .await;
        freeze(&site, &server).await;

        let other = site.start_slow(0).await;
        let jobs = site.assert_complete(&other, &queued).await;
        assert_ne!(jobs[0]["lostLeases"], 0);
        assert!(other.terminate().await.success());
        server.signal("CONT").await;
        Self {
            site,
            server,
            queued,
            jobs,
        }
    }

    async fn changes_nothing(self) {
        // A worker that has worked on another job has ended its work on the first one.
        let next = [ProvisioningJob::on(&self.server, "tables").await];
        self.site.assert_complete(&self.server, &next).await;
        let jobs = self.site.assert_complete(&self.server, &self.queued).await;
        assert_eq!(jobs, self.jobs);
        assert!(self.server.terminate().await.success());
        self.site.assert_consistent().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_frozen_after_its_effect_changes_nothing_when_it_continues() {
    ResumedServer::after(1).await.changes_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_frozen_before_its_effect_creates_nothing_twice() {
    ResumedServer::after(0).await.changes_nothing().await;
}
