//! `wait`: the answer comes when the job has ended, or when the time is up.

use std::time::Duration;

use core_domain::kernel::Caller;
use core_http::kernel::testing::operator;
use http::StatusCode;
use tokio::time::{Instant, sleep};

use super::world::{World, refused, tenant};

#[tokio::test(start_paused = true)]
async fn a_job_that_ends_is_answered_when_it_ends() {
    let world = World::new();
    let id = world.job("p1").await;
    let path = format!("/api/v1/provision/jobs/{id}?wait=30");
    let began = Instant::now();
    let caller = tenant("p1");
    let ends = async {
        sleep(Duration::from_secs(4)).await;
        world.cancel(&id).await;
    };
    let (answer, ()) = tokio::join!(world.get(&path, &caller), ends);
    assert_eq!(answer.json["status"], "FAILED");
    let took = began.elapsed().as_millis();
    assert!((4_000..=5_000).contains(&took), "{took} ms");
    let again = Instant::now();
    assert_eq!(world.get(&path, &caller).await.json["status"], "FAILED");
    assert_eq!(again.elapsed(), Duration::ZERO, "it has ended already");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_does_not_end_is_answered_as_it_is_when_the_time_is_up() {
    let world = World::new();
    let id = world.job("p1").await;
    let began = Instant::now();
    let answer = world.get(&format!("/jobs/{id}?wait=3"), &operator()).await;
    assert_eq!(
        (answer.status, &answer.json["status"]),
        (StatusCode::OK, &"QUEUED".into())
    );
    assert_eq!(began.elapsed().as_secs(), 3);
    assert_eq!(answer.header("etag"), "\"1\"");
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_does_not_wait() {
    let world = World::new();
    let id = world.job("p1").await;
    let began = Instant::now();
    let path = format!("/jobs/{id}?wait=30");
    refused(&world.get(&path, &tenant("p2")).await, 404, "NOT_FOUND");
    refused(
        &world.get("/jobs/none?wait=30", &operator()).await,
        404,
        "NOT_FOUND",
    );
    refused(
        &world.get(&path, &Caller::Anonymous).await,
        401,
        "UNAUTHORIZED",
    );
    for (wait, issue) in [
        ("0", "wait: too_small"),
        ("31", "wait: too_big"),
        ("-1", "wait: too_small"),
        ("1.5", "wait: invalid_type"),
        ("soon", "wait: invalid_type"),
        ("", "wait: invalid_type"),
        ("99999999999999999999", "wait: too_big"),
    ] {
        let answer = world
            .get(&format!("/jobs/{id}?wait={wait}"), &operator())
            .await;
        refused(&answer, 400, "VALIDATION_ERROR");
        assert_eq!(answer.issues(), [issue], "{wait}");
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
}
