//! Several processes on one Postgres: each a suite of its own, with the same secret.

use crate::people::{builder, signed_up};
use crate::stores;
use crate::support::Call;

#[tokio::test]
async fn two_nodes_on_one_postgres_know_each_others_sessions_and_share_the_jobs() {
    let store = stores::postgres().await;
    let node = || builder(store.builder.clone().secret([7; 32])).build();
    let (first, second) = (node().await.unwrap(), node().await.unwrap());
    let ada = signed_up(&first, "engines", "Engines").await;

    let platform = format!("/api/v1/platforms/{}", ada.platform);
    let asked = Call::get(&platform).bearer(&ada.token);
    asked.to(&second.gateway()).await.expect(200);
    let jobs = Call::get("/api/v1/provisioning/jobs").bearer(&ada.token);
    let jobs = jobs.to(&second.gateway()).await.expect(200).json();
    let job = jobs["data"][0]["jobId"].as_str().unwrap();
    ada.job_done(&second, job).await;
    let resources = Call::get(format!("{platform}/resources?limit=2")).bearer(&ada.token);
    let page = resources.to(&first.gateway()).await.expect(200).json();
    assert_eq!(page["pagination"]["total"], 6);

    // A cursor of one node is good at the other.
    let cursor = page["pagination"]["nextCursor"].as_str().unwrap();
    let next = Call::get(format!("{platform}/resources?limit=2&cursor={cursor}"));
    let next = next.bearer(&ada.token).to(&second.gateway()).await;
    assert_eq!(next.expect(200).json()["data"].as_array().unwrap().len(), 2);
    first.shutdown().await;
    second.shutdown().await;
}
