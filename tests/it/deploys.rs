//! Many deployments asked for at once, on every store.

use std::collections::BTreeSet;

use core_suite::Suite;
use futures_util::future::join_all;
use http::Method;

use crate::people::{Signed, builder, signed_up};
use crate::slice::site_archive;
use crate::stores::{self, Fresh};
use crate::support::{Answer, Call};

const AT_ONCE: usize = 10;

async fn at_once(suite: &Suite, person: &Signed, branch: &str, key: Option<&str>) -> Vec<Answer> {
    let path = format!("/api/v1/cli/platforms/{}/deploy", person.platform);
    let mut call = Call::new(Method::POST, path)
        .bearer(&person.token)
        .header("x-core-deploy-branch", branch)
        .raw("application/gzip", site_archive());
    if let Some(key) = key {
        call = call.header("idempotency-key", key);
    }
    let running = (0..AT_ONCE).map(|_| {
        let (call, gateway) = (call.clone(), suite.gateway());
        tokio::spawn(async move { call.to(&gateway).await })
    });
    let answers = join_all(running).await;
    answers.into_iter().map(Result::unwrap).collect()
}

fn one_is_new(answers: &[Answer]) {
    let mut statuses: Vec<u16> = answers.iter().map(|a| a.status.as_u16()).collect();
    statuses.sort_unstable();
    let mut expected = vec![200; AT_ONCE - 1];
    expected.push(202);
    assert_eq!(statuses, expected);
    let ids = answers.iter().map(|a| a.json()["deploymentId"].to_string());
    assert_eq!(ids.collect::<BTreeSet<_>>().len(), 1);
}

async fn of_many_one_is_new(store: Fresh) {
    let suite = builder(store.builder.clone()).build().await.unwrap();
    let person = signed_up(&suite, "engines", "Analytical Engines").await;
    one_is_new(&at_once(&suite, &person, "a", Some("build-1")).await);
    one_is_new(&at_once(&suite, &person, "b", None).await);
    suite.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_deployments_at_once_one_is_new_in_memory() {
    of_many_one_is_new(stores::memory()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_deployments_at_once_one_is_new_on_sqlite() {
    of_many_one_is_new(stores::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_deployments_at_once_one_is_new_on_postgres() {
    of_many_one_is_new(stores::postgres().await).await;
}
