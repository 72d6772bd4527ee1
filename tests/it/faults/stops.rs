//! F14: a server is stopped while jobs run.

use core_domain::port::Mode;
use core_domain::provisioning::{Job, JobLease, JobLeaseQuery, JobStatus};

use super::site::{ProvisioningJob, Site, on_both_databases};
use crate::world::{ALL_JOBS, list};

on_both_databases! {
    a_stop_under_load_releases_every_job_without_counting_attempts,
}

async fn a_stop_under_load_releases_every_job_without_counting_attempts(site: Site) {
    let slow = ["--local-latency-ms", "150"];
    let mut queued = Vec::new();
    for round in 0..2 {
        let server = site.start(&slow).await;
        queued.extend(ProvisioningJob::many(&server, &format!("engines-{round}"), 8).await);
        queued[queued.len() - 1].wait_until_running(&server).await;
        assert!(server.terminate().await.success());
        assert_all_released(&site).await;
    }
    let server = site.start(&[]).await;
    let jobs = site.assert_complete(&server, &queued).await;
    for job in jobs {
        assert_eq!([&job["attempts"], &job["lostLeases"]], [0, 0], "I14 {job}");
    }
    assert!(server.terminate().await.success());
    site.assert_consistent().await;
}

/// Checks that no lease is left that would have to expire, and that no job waits for its next attempt.
async fn assert_all_released(site: &Site) {
    let store = site.store().await;
    let mut uow = store.begin(Mode::Read).await.unwrap();
    let now = uow.now().await.unwrap();
    let leases: Vec<JobLease> = list(uow.as_mut(), JobLeaseQuery::All).await;
    assert_eq!(leases, []);
    let jobs: Vec<Job> = list(uow.as_mut(), ALL_JOBS).await;
    let unfinished = jobs.iter().filter(|job| job.status != JobStatus::Completed);
    let unfinished: Vec<&Job> = unfinished.collect();
    assert!(
        !unfinished.is_empty(),
        "the stop was requested while jobs ran"
    );
    for job in unfinished {
        assert_eq!(job.status, JobStatus::Queued);
        assert!(job.run_at <= now, "{job:?}");
    }
    uow.rollback().await;
}
