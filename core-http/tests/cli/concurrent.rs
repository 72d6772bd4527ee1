//! Many at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use core_domain::cli::Limits;
use core_http::kernel::testing::Answer;
use http::StatusCode;
use tokio::sync::Semaphore;

use crate::world::{SITE, World, pieces, unending};

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

#[tokio::test(start_paused = true)]
async fn who_gets_no_turn_to_upload_is_not_read_and_told_to_come_back_and_a_turn_is_given_back() {
    let world = Arc::new(World::new().await);
    let (reading, end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let at_once = Limits::default().uploads_at_once;
    let mut running = Vec::new();
    for n in 0..at_once {
        let (world, body) = (Arc::clone(&world), unending(&reading, &end));
        running.push(tokio::spawn(async move {
            let branch = format!("b{n}");
            let headers = [("x-core-deploy-branch", branch.as_str())];
            world
                .deploy_as(&world.ada(), &world.path(), &headers, body)
                .await
        }));
    }
    let all = u32::try_from(at_once).unwrap();
    reading.acquire_many(all).await.unwrap().forget();

    let (body, read) = pieces(1, SITE);
    let refused = world
        .deploy_as(&world.ada(), &world.path(), &[], body)
        .await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.code(), "SERVICE_UNAVAILABLE");
    assert_eq!(refused.headers["retry-after"], "5");
    assert!(!read.load(std::sync::atomic::Ordering::Relaxed));

    end.add_permits(at_once);
    for answer in running {
        assert_eq!(answer.await.unwrap().status, StatusCode::ACCEPTED);
    }
    let later = world.deploy(&[], SITE).await;
    assert_eq!(later.status, StatusCode::ACCEPTED);
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_stops_coming_gives_its_turn_back() {
    let world = World::new().await;
    let never = Arc::new(Semaphore::new(0));
    for _ in 0..=Limits::default().uploads_at_once {
        let body = unending(&never, &Arc::new(Semaphore::new(0)));
        let late = world
            .deploy_as(&world.ada(), &world.path(), &[], body)
            .await;
        assert_eq!(late.status, StatusCode::BAD_REQUEST);
        assert_eq!(late.code(), "BAD_REQUEST");
    }
    assert_eq!(world.deploy(&[], SITE).await.status, StatusCode::ACCEPTED);
}
