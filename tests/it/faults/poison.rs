//! F10: a job that kills every process that works on it.

use core_domain::provisioning::MAX_LOST_LEASES;
use serde_json::json;

use super::site::{Site, on_both_databases, statuses};

on_both_databases! {
    a_job_that_kills_five_processes_fails_and_affects_no_other_job,
}

async fn a_job_that_kills_five_processes_fails_and_affects_no_other_job(site: Site) {
    let (mut steady, mut deaths) = (Vec::new(), 0);
    let ended = loop {
        steady.extend((0..3).map(|number| format!("steady-{deaths}-{number}")));
        // The clock of each process is ten minutes ahead of the previous one, so leases and pauses have expired.
        let orders = json!({
            "slots": 8, "ahead": deaths * 600, "steady": steady, "poison": ["poison"], "wait": true,
        });
        let output = site.run_node(orders).await;
        if output.status.success() {
            break statuses(&output);
        }
        deaths += 1;
        assert!(deaths <= MAX_LOST_LEASES, "{output:?}");
    };
    assert_eq!(deaths, MAX_LOST_LEASES);
    for (name, (_, status, failure)) in &ended {
        let ended = (status.as_str(), failure.as_deref());
        if name == "poison" {
            assert_eq!(ended, ("FAILED", Some("WORKER_LOST")));
            continue;
        }
        assert_eq!(ended, ("COMPLETED", None), "{name}");
        for step in ["first", "second", "third"] {
            let file = site
                .data
                .path()
                .join("objects")
                .join(format!("{name}-{step}"));
            let made = std::fs::read_to_string(file).unwrap();
            assert_eq!(made.lines().count(), 1, "{name}-{step}: {made}");
        }
    }
    site.assert_consistent().await;
}
