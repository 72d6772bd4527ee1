//! Several processes on one Postgres: each is a suite of its own, with the same secret.

use crate::world::{Backend, Fresh, Installation, sign_up};

#[tokio::test]
async fn two_nodes_on_one_postgres_share_sessions_jobs_and_cursors() {
    two_nodes_share_sessions_jobs_and_cursors(Backend::Postgres).await;
}

#[tokio::test]
async fn two_nodes_on_one_pool_of_sqlx_share_sessions_jobs_and_cursors() {
    two_nodes_share_sessions_jobs_and_cursors(Backend::Sqlx).await;
}

async fn two_nodes_share_sessions_jobs_and_cursors(backend: Backend) {
    let fresh = Fresh::on(backend).await;
    let node = || fresh.builder.clone().secret([7; 32]).build();
    let (first, second) = (node().await.unwrap(), node().await.unwrap());
    let ada = sign_up(&first, "engines", "Engines").await;

    let _ = second.get(&ada.token, &ada.at("")).await.expect(200);
    let job = ada.job(&second).await;
    ada.job_done(&second, &job).await;
    let resources = ada.at("/resources?limit=2");
    let page = first.get(&ada.token, &resources).await.expect(200);
    assert_eq!(page.total(), Some(6));

    // A cursor of one node is valid at the other.
    let cursor = page.json["pagination"]["nextCursor"].as_str().unwrap();
    let next = format!("{resources}&cursor={cursor}");
    let next = second.get(&ada.token, &next).await.expect(200);
    assert_eq!(next.each("id").len(), 2);
    first.shutdown().await;
    second.shutdown().await;
}
