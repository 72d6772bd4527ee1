//! F7: Postgres restarts as after a crash, connections are scarce, or wake-ups are lost.

use core_storage::testing::{DedicatedPostgres, connect};
use futures_util::future::join_all;

use super::site::{ProvisioningJob, Site};
use crate::world::{Backend, Rng};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_job_is_lost_or_done_twice_when_postgres_restarts() {
    let postgres = DedicatedPostgres::start().await;
    let site = Site::at(postgres.url.clone(), tempfile::tempdir().unwrap());
    let rng = Rng::new(7);
    let killed = site.start_slow(60).await;
    let server = site.start_slow(60).await;
    let queued = ProvisioningJob::many(&server, "engines", 8).await;
    queued[7].wait_until_running(&server).await;
    // The other server recovers the killed server's jobs when the database is available.
    killed.kill().await;
    for _ in 0..3 {
        postgres.restart_immediately().await;
        for _ in 0..rng.below(60) {
            let _ = queued[0].get(&server).await;
        }
    }
    site.assert_complete(&server, &queued).await;
    assert!(server.terminate().await.success());
    site.assert_consistent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_accepted_job_completes_with_two_connections() {
    let site = Site::on(Backend::Postgres).await;
    let two = ["--set", "settings.pool.postgres_connections=2"];
    let server = site.start(&two).await;
    let slugs: Vec<String> = (0..12).map(|number| format!("engines-{number}")).collect();
    let queued = join_all(slugs.iter().map(|slug| ProvisioningJob::on(&server, slug))).await;
    site.assert_complete(&server, &queued).await;
    assert!(server.terminate().await.success());
    site.assert_consistent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_wake_ups_finds_jobs_by_polling() {
    let site = Site::on(Backend::Postgres).await;
    let worker = site.start(&[]).await;
    let server = site.start(&["--set", "settings.worker.slots=0"]).await;
    let database = connect(&site.database).await;
    let listening = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE datname = current_database() AND query = 'LISTEN \"core_jobs\"'";
    let mut cut = 0;
    while cut < 2 {
        cut += database.query(listening, &[]).await.unwrap().len();
    }
    // The listeners reconnect, and are disconnected again.
    let cutting = tokio::spawn(async move {
        loop {
            database.query(listening, &[]).await.unwrap();
        }
    });
    let queued = [ProvisioningJob::on(&server, "engines").await];
    site.assert_complete(&server, &queued).await;
    assert!(!cutting.is_finished());
    cutting.abort();
    assert!(worker.terminate().await.success());
    assert!(server.terminate().await.success());
    site.assert_consistent().await;
}
