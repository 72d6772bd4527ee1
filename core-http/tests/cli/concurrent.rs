//! Many at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use core_http::kernel::testing::Answer;
use http::StatusCode;

use crate::world::{SITE, World};

const AT_ONCE: usize = 12;

/// Sends the same deployment many times at once.
async fn at_once(world: &Arc<World>, headers: &'static [(&str, &str)]) -> Vec<Answer> {
    let one = |_| {
        let world = Arc::clone(world);
        tokio::spawn(async move { world.deploy(headers, SITE).await })
    };
    let running: Vec<_> = (0..AT_ONCE).map(one).collect();
    let mut answers = Vec::new();
    for answer in running {
        answers.push(answer.await.unwrap());
    }
    answers
}

async fn one_is_new_and_the_others_are_told(headers: &'static [(&str, &str)]) {
    let world = Arc::new(World::new().await);
    let answers = at_once(&world, headers).await;
    let mut statuses: Vec<StatusCode> = answers.iter().map(|a| a.status).collect();
    statuses.sort_unstable();
    let mut expected = vec![StatusCode::OK; AT_ONCE - 1];
    expected.push(StatusCode::ACCEPTED);
    assert_eq!(statuses, expected);
    let ids = answers.iter().map(|a| a.json["deploymentId"].to_string());
    assert_eq!(ids.collect::<BTreeSet<_>>().len(), 1);
    assert_eq!(world.kept.count(), 1);
    assert!(world.kept.has(&answers[0].json["deploymentId"]));
    assert_eq!(world.audited("deployment.created").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_requests_with_one_key_one_is_new_and_the_others_are_told_where_it_stands() {
    one_is_new_and_the_others_are_told(&[("idempotency-key", "build-1")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_requests_without_a_key_with_the_same_content_one_is_new() {
    one_is_new_and_the_others_are_told(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_requests_with_different_keys_one_is_new_and_the_others_are_refused() {
    let world = Arc::new(World::new().await);
    let one = |n: usize| {
        let world = Arc::clone(&world);
        let key = format!("build-{n}");
        tokio::spawn(async move {
            world
                .deploy(&[("idempotency-key", &key)], SITE)
                .await
                .status
        })
    };
    let running: Vec<_> = (0..AT_ONCE).map(one).collect();
    let mut statuses = Vec::new();
    for status in running {
        statuses.push(status.await.unwrap());
    }
    statuses.sort_unstable();
    let mut expected = vec![StatusCode::ACCEPTED];
    expected.resize(AT_ONCE, StatusCode::CONFLICT);
    assert_eq!(statuses, expected);
    assert_eq!(world.kept.count(), 1);
}

#[tokio::test]
async fn a_client_that_leaves_while_its_upload_is_kept_finds_its_deployment_later() {
    let world = Arc::new(World::new().await);
    world.kept.gate.forget_permits(1_000);
    let woken = world.woken.clone();
    let queued = woken.now.notified();
    let key = [("idempotency-key", "build-1")];
    let leaving = {
        let world = Arc::clone(&world);
        tokio::spawn(async move { world.deploy(&key, SITE).await })
    };
    world.kept.came.acquire().await.unwrap().forget();
    leaving.abort();
    assert!(leaving.await.unwrap_err().is_cancelled());
    world.kept.gate.add_permits(1_000);
    queued.await;
    let again = world.deploy(&key, SITE).await;
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(world.kept.count(), 1);
    assert!(world.kept.has(&again.json["deploymentId"]));
}
