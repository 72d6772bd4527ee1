//! Throttling of failed sign-ins, and the rate limits of requests that reach IAM without a gateway.

use std::net::SocketAddr;
use std::time::Duration;

use core_domain::gateway::RateKind;
use core_http::kernel::{PeerAddr, ViaGateway, bytes_body, empty_body};
use futures_util::future::join_all;
use http::{Request, request};
use serde_json::{Value, json};

use super::{ADA, DAY, EVE, GET_SESSION, NEW_PASSWORD, SIGN_IN, SIGN_UP, WRONG_PASSWORD};
use crate::world::{Answer, PASSWORD, World};

fn with_peer(client: u8, request: request::Builder) -> request::Builder {
    request.extension(PeerAddr(SocketAddr::from(([203, 0, 113, client], 4_000))))
}

/// Signs in from a client through a gateway, where only failures count.
async fn sign_in(world: &World, client: u8, email: &str, password: &str) -> Answer {
    let body = json!({ "email": email, "password": password });
    let request = Request::post(SIGN_IN)
        .header("content-type", "application/json")
        .header("user-agent", "test agent")
        .extension(ViaGateway);
    let request = with_peer(client, request).body(bytes_body(body.to_string()));
    world.iam.raw(request.unwrap()).await
}

/// Asserts that a sign-in with a wrong password is refused with 401.
async fn fail(world: &World, client: u8, email: &str) {
    let wrong = sign_in(world, client, email, WRONG_PASSWORD).await;
    wrong.expect_error(401, "INVALID_EMAIL_OR_PASSWORD");
}

/// Asserts that a sign-in with the right password has to wait this many seconds.
async fn assert_sign_in_delayed(world: &World, client: u8, email: &str, seconds: u64) {
    let refused = sign_in(world, client, email, PASSWORD).await;
    let refused = refused.expect_error(429, "RATE_LIMITED");
    let message = "Too many requests. Please try again later.";
    assert_eq!(refused.text("message"), message);
    for header in ["retry-after", "x-retry-after"] {
        assert_eq!(refused.header(header), seconds.to_string(), "{header}");
    }
}

/// Asserts that a sign-in with the right password succeeds.
async fn succeed(world: &World, client: u8, email: &str) {
    let signed_in = sign_in(world, client, email, PASSWORD).await;
    let _ = signed_in.expect(200);
}

#[tokio::test]
async fn after_five_failures_the_delay_of_an_account_grows_for_every_client() {
    let world = World::new();
    world.sign_up(ADA).await;
    // A delay must not reveal which accounts exist, and concurrent requests must not get more attempts.
    for email in [ADA, EVE] {
        let tried = (0..20).map(|client| sign_in(&world, client, email, WRONG_PASSWORD));
        let tried = join_all(tried).await;
        let failed = tried.iter().filter(|answer| answer.status == 401);
        assert_eq!(failed.count(), 5);
    }
    for (client, seconds) in [(10, 1), (11, 2), (12, 4), (13, 8)] {
        // Refused attempts do not count as failures.
        for _ in 0..31 {
            assert_sign_in_delayed(&world, 99, "ADA@example.org", seconds).await;
        }
        fail(&world, client, "bob@example.org").await;
        world.tick(seconds - 1);
        assert_sign_in_delayed(&world, client, ADA, 1).await;
        world.tick(1);
        fail(&world, client, ADA).await;
    }
    world.tick(16);
    succeed(&world, 1, ADA).await;
    for client in 0..5 {
        fail(&world, client, ADA).await;
    }
    assert_sign_in_delayed(&world, 1, ADA, 1).await;
}

/// Returns the audited lock-outs, oldest first: the user id, the number of failures and the client address.
async fn lockouts(world: &World) -> Vec<(String, u64, String)> {
    let entries = world.audit("user.locked_out").await;
    let told = entries.iter().rev().map(|entry| {
        let details: Value = serde_json::from_str(entry.after.as_ref().unwrap().as_str()).unwrap();
        let about: Value = serde_json::from_str(entry.metadata.as_str()).unwrap();
        assert_eq!(details["email"], ADA);
        assert_eq!(about["userAgent"], "test agent");
        (
            entry.entity_id.clone(),
            details["failures"].as_u64().unwrap(),
            about["ip"].as_str().unwrap().to_owned(),
        )
    });
    told.collect()
}

#[tokio::test]
async fn each_delay_is_audited_once_whatever_number_of_sign_ins_it_refuses() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    for client in 0..5 {
        fail(&world, client, ADA).await;
    }
    assert_eq!(lockouts(&world).await, []);
    for (failures, client) in [(5, 20), (6, 30)] {
        for client in client..client + 10 {
            assert_sign_in_delayed(&world, client, ADA, if failures == 5 { 1 } else { 2 }).await;
        }
        let told = lockouts(&world).await;
        let expected = (ada.user_id.clone(), failures, format!("203.0.113.{client}"));
        assert_eq!(told.last(), Some(&expected));
        assert_eq!(told.len() as u64, failures - 4);
        world.tick(1);
        if failures == 5 {
            fail(&world, 1, ADA).await;
        }
    }
    // A session has a counter of its own, whose lock-outs are audited as well.
    let path = "/api/auth/verify-password";
    let check = async |password: &str| {
        let body = json!({ "password": password });
        world.iam.post(&ada.caller(), path, body).await
    };
    let _ = check(PASSWORD).await.expect(200);
    for _ in 0..5 {
        check(WRONG_PASSWORD)
            .await
            .expect_error(400, "INVALID_PASSWORD");
    }
    for _ in 0..3 {
        check(PASSWORD).await.expect_error(429, "RATE_LIMITED");
    }
    assert_eq!(world.audit("user.locked_out").await.len(), 3);
    assert_eq!(world.audit("user.password_check_failed").await.len(), 5);
}

#[tokio::test]
async fn only_a_client_that_tries_many_accounts_is_refused() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let mut looked_at = 0;
    for n in 0..60 {
        let email = format!("person{n}@example.org");
        let answer = sign_in(&world, 1, &email, WRONG_PASSWORD).await;
        if answer.status == 401 {
            looked_at += 1;
            continue;
        }
        let refused = answer.expect_error(429, "RATE_LIMITED");
        assert_eq!(refused.header("retry-after"), "3600");
    }
    assert_eq!(looked_at, 30);
    let told = world.audit("client.locked_out").await;
    let [told] = &told[..] else {
        panic!("expected one entry per window: {told:?}");
    };
    let details = told.after.as_ref().unwrap().as_str();
    assert!(details.contains(r#""limit":"failed-accounts-of-client","retryAfter":3600"#));
    assert!(details.contains("person30@example.org"), "{details}");
    assert_sign_in_delayed(&world, 1, ADA, 3_600).await;
    succeed(&world, 2, ADA).await;
    let session = world
        .send_with_bearer(&ada.token, "GET", GET_SESSION)
        .await
        .expect(200);
    assert_eq!(session.json["user"]["email"], ADA);
    // Concurrent attempts do not exceed the limit.
    let tried = (0..60).map(|n| {
        let (world, email) = (&world, format!("other{n}@example.org"));
        async move { sign_in(world, 3, &email, WRONG_PASSWORD).await }
    });
    let tried = join_all(tried).await;
    let failed = tried.iter().filter(|answer| answer.status == 401);
    assert_eq!(failed.count(), 30);
    assert_eq!(world.audit("client.locked_out").await.len(), 2);
    world.tick(3_600);
    succeed(&world, 1, ADA).await;
}

#[tokio::test]
async fn accounts_that_sign_in_after_a_failure_do_not_count_as_spraying() {
    let hour = Duration::from_secs(3_600);
    let world = World::with(|app| {
        let rates = &mut app.options.rates;
        rates
            .set(RateKind::FailedAccountsOfClient, 2, hour)
            .unwrap();
    });
    world.sign_up(ADA).await;
    world.sign_up(EVE).await;
    for email in [ADA, EVE, ADA, EVE] {
        fail(&world, 1, email).await;
        fail(&world, 1, email).await;
        succeed(&world, 1, email).await;
    }
    let at_once = join_all((0..5).map(|_| sign_in(&world, 1, ADA, PASSWORD))).await;
    assert!(at_once.iter().all(|answer| answer.status == 200));
    for name in ["bob", "dan"] {
        fail(&world, 1, &format!("{name}@example.org")).await;
    }
    fail(&world, 1, "bob@example.org").await;
    assert_sign_in_delayed(&world, 1, ADA, 3_600).await;
}

#[tokio::test]
async fn a_locked_account_keeps_its_sessions_and_a_password_reset_unlocks_it() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    for round in 0..16 {
        fail(&world, 1, ADA).await;
        world.tick(if round < 15 { 900 } else { 0 });
    }
    assert_sign_in_delayed(&world, 2, ADA, 900).await;
    let session = world
        .send_with_bearer(&ada.token, "GET", GET_SESSION)
        .await
        .expect(200);
    assert_eq!(session.json["user"]["email"], ADA);
    let _ = world.reset_password(ADA, NEW_PASSWORD).await.expect(200);
    let _ = sign_in(&world, 2, ADA, NEW_PASSWORD).await.expect(200);
}

#[tokio::test]
async fn failures_are_forgotten_one_day_after_the_last_one() {
    let world = World::new();
    for (pause, then) in [(0, 5), (DAY, 5), (DAY - 1, 1)] {
        world.tick(pause);
        for client in 0..then {
            fail(&world, client, ADA).await;
        }
    }
    assert_sign_in_delayed(&world, 9, ADA, 2).await;
}

#[tokio::test]
async fn failures_of_a_client_are_limited_per_account_and_in_total() {
    let world = World::with(|app| {
        let rates = &mut app.options.rates;
        let minute = Duration::from_secs(60);
        rates.set(RateKind::FailedSignIns, 3, minute).unwrap();
        let hour = Duration::from_secs(3_600);
        rates.set(RateKind::FailedSignInsOfClient, 5, hour).unwrap();
    });
    world.sign_up(ADA).await;
    for _ in 0..10 {
        succeed(&world, 1, ADA).await;
    }
    for _ in 0..3 {
        fail(&world, 1, ADA).await;
    }
    for _ in 0..5 {
        assert_sign_in_delayed(&world, 1, "ADA@example.org", 60).await;
    }
    succeed(&world, 2, ADA).await;
    fail(&world, 1, EVE).await;
    fail(&world, 1, "bob@example.org").await;
    for email in [ADA, "dan@example.org"] {
        assert_sign_in_delayed(&world, 1, email, 3_600).await;
    }
    succeed(&world, 2, ADA).await;
    world.tick(60);
    assert_sign_in_delayed(&world, 1, ADA, 3_540).await;
    world.tick(3_540);
    succeed(&world, 1, ADA).await;
}

#[tokio::test]
async fn clients_without_a_gateway_have_the_rate_limits_of_the_routes() {
    let world = World::new();
    for (method, path, limit, policy) in [
        ("POST", SIGN_IN, 10, "\"strict\";q=10;w=60"),
        ("POST", SIGN_UP, 10, "\"strict\";q=10;w=60"),
        ("GET", GET_SESSION, 100, "\"default\";q=100;w=60"),
    ] {
        let ask = |client: u8| {
            let request = with_peer(client, Request::builder().method(method).uri(path));
            world.iam.raw(request.body(empty_body()).unwrap())
        };
        for _ in 0..limit {
            assert_ne!(ask(1).await.status, 429, "{path}");
        }
        let refused = ask(1).await;
        assert_eq!(refused.header("ratelimit-policy"), policy);
        assert_eq!(refused.header("retry-after"), "60");
        assert_eq!(refused.text("code"), "RATE_LIMITED");
        refused.expect_error(429, "RATE_LIMITED");
        assert_ne!(ask(2).await.status, 429, "{path}");
    }
}
