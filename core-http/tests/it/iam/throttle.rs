//! Nobody tries passwords without end, and IAM's own port is as limited as a gateway.

use std::net::SocketAddr;
use std::time::Duration;

use core_domain::gateway::RateKind;
use core_http::kernel::{PeerAddr, ViaGateway, bytes_body, empty_body};
use futures_util::future::join_all;
use http::{Request, request};
use serde_json::{Value, json};

use super::{ADA, DAY, EVE, GET_SESSION, NEW, SIGN_IN, SIGN_UP, WRONG};
use crate::world::{Answer, PASSWORD, World};

fn from(client: u8, request: request::Builder) -> request::Builder {
    request.extension(PeerAddr(SocketAddr::from(([203, 0, 113, client], 4_000))))
}

/// Signs in from a client behind a gateway, where only what fails is counted.
async fn sign_in(world: &World, client: u8, email: &str, password: &str) -> Answer {
    let body = json!({ "email": email, "password": password });
    let request = Request::post(SIGN_IN)
        .header("content-type", "application/json")
        .header("user-agent", "test agent")
        .extension(ViaGateway);
    let request = from(client, request).body(bytes_body(body.to_string()));
    world.iam.raw(request.unwrap()).await
}

async fn fail(world: &World, client: u8, email: &str) {
    let wrong = sign_in(world, client, email, WRONG).await;
    wrong.refused(401, "INVALID_EMAIL_OR_PASSWORD");
}

/// With the right password, and has to wait for so long.
async fn waits(world: &World, client: u8, email: &str, seconds: u64) {
    let refused = sign_in(world, client, email, PASSWORD).await;
    let refused = refused.refused(429, "RATE_LIMITED");
    let message = "Too many requests. Please try again later.";
    assert_eq!(refused.text("message"), message);
    for header in ["retry-after", "x-retry-after"] {
        assert_eq!(refused.header(header), seconds.to_string(), "{header}");
    }
}

async fn succeed(world: &World, client: u8, email: &str) {
    let signed_in = sign_in(world, client, email, PASSWORD).await;
    let _ = signed_in.expect(200);
}

#[tokio::test]
async fn after_five_failures_an_account_waits_longer_and_longer_whoever_tries() {
    let world = World::new();
    world.sign_up(ADA).await;
    // Nobody shall learn from a delay which accounts there are, or get more by asking many times at once.
    for email in [ADA, EVE] {
        let tried = (0..20).map(|client| sign_in(&world, client, email, WRONG));
        let tried = join_all(tried).await;
        let failed = tried.iter().filter(|answer| answer.status == 401);
        assert_eq!(failed.count(), 5);
    }
    for (client, seconds) in [(10, 1), (11, 2), (12, 4), (13, 8)] {
        // Whoever waits fails no more, however often they try.
        for _ in 0..31 {
            waits(&world, 99, "ADA@example.org", seconds).await;
        }
        fail(&world, client, "bob@example.org").await;
        world.tick(seconds - 1);
        waits(&world, client, ADA, 1).await;
        world.tick(1);
        fail(&world, client, ADA).await;
    }
    world.tick(16);
    succeed(&world, 1, ADA).await;
    for client in 0..5 {
        fail(&world, client, ADA).await;
    }
    waits(&world, 1, ADA, 1).await;
}

/// The lock-outs in the audit, oldest first: whose, after how many failures, from which address.
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
async fn the_audit_tells_of_each_delay_once_however_many_sign_ins_it_refuses() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    for client in 0..5 {
        fail(&world, client, ADA).await;
    }
    assert_eq!(lockouts(&world).await, []);
    for (failures, client) in [(5, 20), (6, 30)] {
        for client in client..client + 10 {
            waits(&world, client, ADA, if failures == 5 { 1 } else { 2 }).await;
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
    // A session has a counter of its own, and is told of as well.
    let path = "/api/auth/verify-password";
    let check = async |password: &str| {
        let body = json!({ "password": password });
        world.iam.post(&ada.caller(), path, body).await
    };
    let _ = check(PASSWORD).await.expect(200);
    for _ in 0..5 {
        check(WRONG).await.refused(400, "INVALID_PASSWORD");
    }
    for _ in 0..3 {
        check(PASSWORD).await.refused(429, "RATE_LIMITED");
    }
    assert_eq!(world.audit("user.locked_out").await.len(), 3);
    assert_eq!(world.audit("user.password_check_failed").await.len(), 5);
}

#[tokio::test]
async fn who_tries_one_password_on_many_accounts_is_refused_and_nobody_else() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let mut looked_at = 0;
    for n in 0..60 {
        let email = format!("person{n}@example.org");
        let answer = sign_in(&world, 1, &email, WRONG).await;
        if answer.status == 401 {
            looked_at += 1;
            continue;
        }
        let refused = answer.refused(429, "RATE_LIMITED");
        assert_eq!(refused.header("retry-after"), "3600");
    }
    assert_eq!(looked_at, 30);
    let told = world.audit("client.locked_out").await;
    let [told] = &told[..] else {
        panic!("one entry a window: {told:?}");
    };
    let details = told.after.as_ref().unwrap().as_str();
    assert!(details.contains(r#""limit":"failed-accounts-of-client","retryAfter":3600"#));
    assert!(details.contains("person30@example.org"), "{details}");
    waits(&world, 1, ADA, 3_600).await;
    succeed(&world, 2, ADA).await;
    let session = world.held(&ada.token, "GET", GET_SESSION).await.expect(200);
    assert_eq!(session.json["user"]["email"], ADA);
    // Whoever tries them all at once tries no more of them.
    let tried = (0..60).map(|n| {
        let (world, email) = (&world, format!("other{n}@example.org"));
        async move { sign_in(world, 3, &email, WRONG).await }
    });
    let tried = join_all(tried).await;
    let failed = tried.iter().filter(|answer| answer.status == 401);
    assert_eq!(failed.count(), 30);
    assert_eq!(world.audit("client.locked_out").await.len(), 2);
    world.tick(3_600);
    succeed(&world, 1, ADA).await;
}

#[tokio::test]
async fn people_of_one_address_who_mistype_are_no_spraying() {
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
    waits(&world, 1, ADA, 3_600).await;
}

#[tokio::test]
async fn a_locked_account_keeps_its_sessions_and_its_owner_comes_in_by_mail_at_once() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    for round in 0..16 {
        fail(&world, 1, ADA).await;
        world.tick(if round < 15 { 900 } else { 0 });
    }
    waits(&world, 2, ADA, 900).await;
    let session = world.held(&ada.token, "GET", GET_SESSION).await.expect(200);
    assert_eq!(session.json["user"]["email"], ADA);
    let _ = world.reset_password(ADA, NEW).await.expect(200);
    let _ = sign_in(&world, 2, ADA, NEW).await.expect(200);
}

#[tokio::test]
async fn failures_are_forgotten_a_day_after_the_last_one() {
    let world = World::new();
    for (pause, then) in [(0, 5), (DAY, 5), (DAY - 1, 1)] {
        world.tick(pause);
        for client in 0..then {
            fail(&world, client, ADA).await;
        }
    }
    waits(&world, 9, ADA, 2).await;
}

#[tokio::test]
async fn failures_of_a_client_are_limited_with_one_account_and_over_all_and_successes_are_none() {
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
        waits(&world, 1, "ADA@example.org", 60).await;
    }
    succeed(&world, 2, ADA).await;
    fail(&world, 1, EVE).await;
    fail(&world, 1, "bob@example.org").await;
    for email in [ADA, "dan@example.org"] {
        waits(&world, 1, email, 3_600).await;
    }
    succeed(&world, 2, ADA).await;
    world.tick(60);
    waits(&world, 1, ADA, 3_540).await;
    world.tick(3_540);
    succeed(&world, 1, ADA).await;
}

#[tokio::test]
async fn a_client_that_reaches_iam_without_a_gateway_is_limited_as_the_rows_say() {
    let world = World::new();
    for (method, path, limit, policy) in [
        ("POST", SIGN_IN, 10, "\"strict\";q=10;w=60"),
        ("POST", SIGN_UP, 10, "\"strict\";q=10;w=60"),
        ("GET", GET_SESSION, 100, "\"default\";q=100;w=60"),
    ] {
        let ask = |client: u8| {
            let request = from(client, Request::builder().method(method).uri(path));
            world.iam.raw(request.body(empty_body()).unwrap())
        };
        for _ in 0..limit {
            assert_ne!(ask(1).await.status, 429, "{path}");
        }
        let refused = ask(1).await;
        assert_eq!(refused.header("ratelimit-policy"), policy);
        assert_eq!(refused.header("retry-after"), "60");
        assert_eq!(refused.text("code"), "RATE_LIMITED");
        refused.refused(429, "RATE_LIMITED");
        assert_ne!(ask(2).await.status, 429, "{path}");
    }
}
