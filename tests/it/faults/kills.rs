//! F1: `kill -9` at whatever moment.

use super::site::{Queued, Site, on_both_databases};
use crate::world::Rng;

/// Fewer than the lost leases after which a job is given up.
const KILLS: usize = 3;

on_both_databases! {
    wherever_a_server_is_killed_every_job_completes_with_each_object_once,
}

async fn wherever_a_server_is_killed_every_job_completes_with_each_object_once(site: Site) {
    let rng = Rng::new(1);
    let mut queued = Vec::new();
    for round in 0..KILLS {
        let server = site.start_slow(30).await;
        queued.extend(Queued::many(&server, &format!("engines-{round}"), 4).await);
        let last = queued.last().unwrap();
        last.runs(&server).await;
        // The moment is as random as the answers are quick.
        for _ in 0..rng.below(80) {
            let _ = last.shown(&server).await.expect(200);
        }
        server.kill().await;
    }
    let server = site.start_slow(0).await;
    let jobs = site.is_complete(&server, &queued).await;
    let lost = |job: &serde_json::Value| job["lostLeases"].as_u64().unwrap();
    assert!(
        jobs.iter().map(lost).sum::<u64>() > 0,
        "some ran when a server was killed"
    );
    assert!(server.terminate().await.success());
    site.is_consistent().await;
}
