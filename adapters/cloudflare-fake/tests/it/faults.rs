//! Tests of injected faults.

use std::time::Duration;

use core_cloudflare_fake::{Fault, Kind, Matcher, Pace, Silence};
use serde_json::json;

use super::world::{Reply, World};

const D1: &str = "/accounts/{a}/d1/database";

fn create() -> Matcher {
    Matcher::new("POST", "/accounts/*/d1/database")
}

/// Creates a database under a fault.
async fn with(fault: Fault) -> (World, Option<Reply>) {
    let world = World::start().await;
    world.fake.inject(create(), fault);
    let reply = send(&world).await;
    (world, reply)
}

/// Creates a database under a fault that prevents any response.
async fn without_answer(fault: Fault) -> World {
    let world = World::start().await;
    world.fake.inject(create(), fault.clone());
    let arrived = async {
        while world.fake.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    tokio::select! {
        reply = send(&world) => assert!(reply.is_none(), "{fault:?}"),
        () = arrived => {}
    }
    world
}

async fn send(world: &World) -> Option<Reply> {
    let body = json!({"name": "db"}).to_string().into();
    let token = world.fake.token();
    world
        .try_send("POST", D1, &token, "application/json", body)
        .await
}

#[tokio::test]
async fn response_is_missing_before_or_after_the_effect() {
    for silence in [Silence::Close, Silence::Hang] {
        for (fault, count) in [
            (Fault::TimeoutAfterEffect(silence), 1),
            (Fault::TimeoutBeforeEffect(silence), 0),
        ] {
            let world = without_answer(fault.clone()).await;
            assert_eq!(world.fake.count(Kind::D1), count, "{fault:?}");
            assert_eq!(world.fake.requests()[0].status, None);
        }
    }
}

#[tokio::test]
async fn errors_occur_with_and_without_an_effect() {
    let limited = Fault::Status {
        status: 429,
        retry_after: Some(7),
    };
    for (fault, status, count) in [
        (limited, 429, 0),
        (
            Fault::Status {
                status: 503,
                retry_after: None,
            },
            503,
            0,
        ),
        (Fault::StatusAfterEffect(502), 502, 1),
        (
            Fault::Refusal {
                status: 400,
                code: 10019,
            },
            400,
            0,
        ),
        (Fault::SuccessFalseWith200, 200, 0),
        (Fault::HtmlBody, 403, 0),
        (Fault::EmptyBody204, 204, 1),
    ] {
        let (world, reply) = with(fault.clone()).await;
        let reply = reply.unwrap();
        assert_eq!(
            (reply.status, world.fake.count(Kind::D1)),
            (status, count),
            "{fault:?}"
        );
        assert_ne!(reply.json()["success"], true, "{fault:?}");
        match fault {
            Fault::Status { status: 429, .. } => assert_eq!(reply.headers["retry-after"], "7"),
            Fault::HtmlBody => assert_eq!(reply.headers["cf-mitigated"], "challenge"),
            Fault::EmptyBody204 => assert!(reply.body.is_empty()),
            Fault::Refusal { .. } => assert_eq!(reply.failure(), (400, 10019)),
            _ => {}
        }
    }
}

#[tokio::test]
async fn duplicated_request_returns_the_second_response() {
    let (world, reply) = with(Fault::DuplicateRequest).await;
    assert_eq!(reply.unwrap().failure(), (400, 7502));
    assert_eq!(world.fake.count(Kind::D1), 1);
}

#[tokio::test]
async fn body_is_slow_or_stalls() {
    let (_world, reply) = with(Fault::SlowBody(Pace::Drip(Duration::from_millis(2)))).await;
    assert_eq!(reply.unwrap().result()["name"], "db");
    let world = without_answer(Fault::SlowBody(Pace::Stall)).await;
    assert_eq!(
        (world.fake.count(Kind::D1), world.fake.requests()[0].status),
        (1, Some(200))
    );
}

#[tokio::test]
async fn faults_match_requests_in_order() {
    let world = World::start().await;
    let fault = |status| Fault::Status {
        status,
        retry_after: None,
    };
    world.fake.inject_times(&create(), &fault(500), 2);
    world.fake.inject(Matcher::any(), fault(502));
    assert_eq!(world.get(D1).await.status, 502);
    for status in [500, 500, 200] {
        assert_eq!(world.post(D1, json!({"name": "db"})).await.status, status);
    }
    world.fake.inject(create(), fault(500));
    assert_eq!(
        (world.get(D1).await.status, world.fake.waiting_faults()),
        (200, 1)
    );
    world.fake.clear_faults();
    assert_eq!(world.fake.waiting_faults(), 0);
}

#[test]
fn patterns_match_segment_by_segment() {
    let matcher = |path| Matcher::new("GET", path);
    for (pattern, path, matches) in [
        ("/a/*", "/a/b", true),
        ("/a/*", "/a/b/c", false),
        ("/a/*", "/a", false),
        ("/a/**", "/a/b/c", true),
        ("/a/**", "/a", true),
        ("/a/*/c", "/a/b/c", true),
        ("/a/*/c", "/a/b/d", false),
    ] {
        assert_eq!(
            matcher(pattern).matches("GET", path),
            matches,
            "{pattern} {path}"
        );
        assert!(!matcher(pattern).matches("POST", path));
    }
}

/// Returns the outcomes of many requests under random faults.
async fn statuses(plan: u64) -> Vec<Option<u16>> {
    let world = World::start().await;
    world.fake.inject_random(plan, 40);
    for number in 0..60 {
        let body = json!({"name": format!("db{number}")}).to_string().into();
        world
            .try_send("POST", D1, &world.fake.token(), "application/json", body)
            .await;
    }
    world
        .fake
        .requests()
        .iter()
        .map(|request| request.status)
        .collect()
}

#[tokio::test]
async fn equal_seeds_give_equal_faults() {
    let first = statuses(7).await;
    assert_eq!(first, statuses(7).await);
    assert_ne!(first, statuses(8).await);
    let failed = first.iter().filter(|status| **status != Some(200)).count();
    assert!((10..50).contains(&failed), "{first:?}");
}

#[tokio::test]
async fn dropped_fake_stops_responding() {
    let world = World::start().await;
    let base = world.fake.base_url();
    let address = base.strip_prefix("http://").unwrap().to_owned();
    assert!(tokio::net::TcpStream::connect(&address).await.is_ok());
    drop(world);
    let closed = async {
        while tokio::net::TcpStream::connect(&address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), closed)
        .await
        .unwrap();
}
