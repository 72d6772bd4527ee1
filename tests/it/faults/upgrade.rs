//! F13: a process of the new version knows a job kind that processes of the old version do not know.

use serde_json::{Value, json};

use super::site::{ProvisioningJob, Site, statuses};
use crate::world::{Backend, Call, Installation, SERVICE_KEY};

/// Returns orders for the process of the new version, to queue a job or to work on it.
fn orders(name: &str, slots: usize, ahead: u64, wait: bool) -> Value {
    json!({ "slots": slots, "ahead": ahead, "steady": [name], "poison": [], "wait": wait })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_left_to_processes_that_know_its_kind_until_its_deadline() {
    let site = Site::on(Backend::Postgres).await;
    let old = site.start(&[]).await;
    let day = 24 * 3_600 + 60;
    for (name, slots, ahead, ended) in [
        ("kept", 4, 0, ("COMPLETED", None)),
        ("late", 0, day, ("FAILED", Some("DEADLINE_EXCEEDED"))),
    ] {
        let queued = statuses(&site.run_node(orders(name, 0, 0, false)).await);
        // The old process works on other jobs, but not on this one.
        let platform = [ProvisioningJob::on(&old, name).await];
        site.assert_complete(&old, &platform).await;
        let path = format!("/api/v1/provision/jobs/{}", queued[name].0);
        let shown = Call::get(path).bearer(SERVICE_KEY);
        let shown = old.send("provisioning", shown).await.expect(200).json;
        let untouched = [json!("QUEUED"), json!(0)];
        assert_eq!([&shown["status"], &shown["fence"]], untouched.each_ref());

        let new = statuses(&site.run_node(orders(name, slots, ahead, true)).await);
        let (_, status, failure) = &new[name];
        assert_eq!((status.as_str(), failure.as_deref()), ended);
    }
    assert!(old.terminate().await.success());
    site.assert_consistent().await;
}
