//! F1: `kill -9` at a random moment.

use super::site::{ProvisioningJob, Site, on_both_databases};
use crate::world::Rng;

/// Fewer than the number of lost leases after which a job fails.
const KILLS: usize = 3;

on_both_databases! {
    after_random_kills_every_job_completes_with_each_object_once,
}

async fn after_random_kills_every_job_completes_with_each_object_once(site: Site) {
    let rng = Rng::new(1);
    let mut queued = Vec::new();
    for round in 0..KILLS {
        let server = site.start_slow(30).await;
        queued.extend(ProvisioningJob::many(&server, &format!("engines-{round}"), 4).await);
        let last = queued.last().unwrap();
        last.wait_until_running(&server).await;
        // The number of requests makes the moment of the kill random.
        for _ in 0..rng.below(80) {
            let _ = last.get(&server).await.expect(200);
        }
        server.kill().await;
    }
    let server = site.start_slow(0).await;
    let jobs = site.assert_complete(&server, &queued).await;
    let lost = |job: &serde_json::Value| job["lostLeases"].as_u64().unwrap();
    assert!(
        jobs.iter().map(lost).sum::<u64>() > 0,
        "some jobs were running when a server was killed"
    );
    assert!(server.terminate().await.success());
    site.assert_consistent().await;
}
