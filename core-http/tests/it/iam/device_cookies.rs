//! Wrong passwords of strangers delay only strangers. A browser that has signed in before and a session have counters
//! of their own.

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use core_domain::gateway::{RateKey, RatePolicy, Usage};
use core_domain::iam::AttemptRefusal;
use core_domain::kernel::Timestamp;
use core_domain::port::{RateLimiter, RateLimiterError};
use core_http::kernel::{PeerAddr, ViaGateway, bytes_body};
use http::Request;
use serde_json::json;

use super::{ADA, EVE, NEW_PASSWORD, SIGN_IN, SIGN_UP, WRONG_PASSWORD, cookies};
use crate::world::{Answer, Api, ORIGIN, PASSWORD, World, iam_config};

/// A browser: its client address, and the device cookie that it keeps.
struct Browser {
    client: u8,
    cookie: Option<String>,
}

impl Browser {
    fn new(client: u8) -> Self {
        Self {
            client,
            cookie: None,
        }
    }

    async fn post(&mut self, iam: &Api, path: &str, body: serde_json::Value) -> Answer {
        let peer = PeerAddr(SocketAddr::from(([203, 0, 113, self.client], 4_000)));
        let mut request = Request::post(path)
            .header("content-type", "application/json")
            .header("origin", ORIGIN)
            .extension(ViaGateway)
            .extension(peer);
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        let answer = iam
            .raw(request.body(bytes_body(body.to_string())).unwrap())
            .await;
        let mut set = cookies(&answer).into_iter();
        if let Some(line) = set.find(|line| line.starts_with("core.device=")) {
            assert!(line.contains("; Max-Age=31536000; Path=/; HttpOnly; SameSite=Lax"));
            self.cookie = line.split(';').next().map(str::to_owned);
        }
        answer
    }

    async fn sign_in(&mut self, iam: &Api, email: &str, password: &str) -> Answer {
        let body = json!({ "email": email, "password": password });
        self.post(iam, SIGN_IN, body).await
    }

    /// Fails five times, so that the next attempt has to wait.
    async fn fail_until_delayed(&mut self, iam: &Api, email: &str) {
        for _ in 0..5 {
            let failed = self.sign_in(iam, email, WRONG_PASSWORD).await;
            failed.expect_error(401, "INVALID_EMAIL_OR_PASSWORD");
        }
        self.assert_sign_in_delayed(iam, email).await;
    }

    /// Asserts that a sign-in with the right password is refused with 429.
    async fn assert_sign_in_delayed(&mut self, iam: &Api, email: &str) {
        let waits = self.sign_in(iam, email, PASSWORD).await;
        waits.expect_error(429, "RATE_LIMITED");
    }

    /// Asserts that a sign-in with the right password succeeds.
    async fn sign_in_successfully(&mut self, iam: &Api, email: &str) -> Answer {
        self.sign_in(iam, email, PASSWORD).await.expect(200)
    }
}

#[tokio::test]
async fn failures_of_strangers_do_not_delay_a_known_browser() {
    let world = World::new();
    world.sign_up(ADA).await;
    let mut own = Browser::new(1);
    own.sign_in_successfully(&world.iam, ADA).await;
    // The stranger uses another address, and then the address of the owner's browser.
    for client in [9, 1] {
        let mut stranger = Browser::new(client);
        stranger.fail_until_delayed(&world.iam, ADA).await;
        own.sign_in_successfully(&world.iam, ADA).await;
        // The owner's sign-in does not end the delay of strangers.
        stranger.assert_sign_in_delayed(&world.iam, ADA).await;
        world.tick(super::DAY);
    }
}

#[tokio::test]
async fn a_known_browser_is_delayed_only_by_its_own_failures() {
    let world = World::new();
    world.sign_up(ADA).await;
    let [mut own, mut other] = [1, 2].map(Browser::new);
    own.sign_in_successfully(&world.iam, ADA).await;
    other.sign_in_successfully(&world.iam, ADA).await;
    own.fail_until_delayed(&world.iam, ADA).await;
    other.sign_in_successfully(&world.iam, ADA).await;
    Browser::new(3).sign_in_successfully(&world.iam, ADA).await;
    own.assert_sign_in_delayed(&world.iam, ADA).await;
    world.tick(1);
    own.sign_in_successfully(&world.iam, ADA).await;
}

#[tokio::test]
async fn device_cookies_of_other_accounts_and_forged_ones_are_ignored() {
    let world = World::new();
    world.sign_up(ADA).await;
    world.sign_up(EVE).await;
    let mut eve = Browser::new(1);
    eve.sign_in_successfully(&world.iam, EVE).await;
    Browser::new(9).fail_until_delayed(&world.iam, ADA).await;
    eve.assert_sign_in_delayed(&world.iam, ADA).await;
    let mut forged = Browser::new(2);
    forged.cookie = eve.cookie.map(|cookie| cookie.replace("%3A", "%3Ax"));
    forged.assert_sign_in_delayed(&world.iam, ADA).await;
    forged.cookie = Some("core.device=x".to_owned());
    forged.assert_sign_in_delayed(&world.iam, ADA).await;
}

#[tokio::test]
async fn a_device_cookie_remembers_four_accounts() {
    let world = World::new();
    let people = ["a", "b", "c", "d", "e"].map(|name| format!("{name}@example.org"));
    let mut shared = Browser::new(1);
    for email in &people {
        world.sign_up(email).await;
        shared.sign_in_successfully(&world.iam, email).await;
    }
    for email in &people {
        Browser::new(9).fail_until_delayed(&world.iam, email).await;
    }
    shared.assert_sign_in_delayed(&world.iam, &people[0]).await;
    for email in &people[1..] {
        shared.sign_in_successfully(&world.iam, email).await;
    }
}

#[tokio::test]
async fn a_sign_up_makes_a_browser_known_and_a_password_change_keeps_it_known() {
    let world = World::new();
    let mut own = Browser::new(1);
    let body = json!({ "name": "Ada", "email": ADA, "password": PASSWORD });
    let _ = own.post(&world.iam, SIGN_UP, body).await.expect(200);
    Browser::new(9).fail_until_delayed(&world.iam, ADA).await;
    let signed_in = own.sign_in_successfully(&world.iam, ADA).await;
    let body = json!({ "currentPassword": PASSWORD, "newPassword": NEW_PASSWORD });
    let path = "/api/auth/change-password";
    let bearer = format!("Bearer {}", signed_in.text("token"));
    let headers = [("authorization", bearer.as_str())];
    let _ = world
        .send_unidentified("POST", path, &headers, body)
        .await
        .expect(200);
    let _ = own.sign_in(&world.iam, ADA, NEW_PASSWORD).await.expect(200);
}

#[tokio::test]
async fn failures_within_a_session_delay_only_that_session() {
    let world = World::new();
    world.sign_up(ADA).await;
    let one = Browser::new(1).sign_in_successfully(&world.iam, ADA).await;
    let other = Browser::new(2).sign_in_successfully(&world.iam, ADA).await;
    Browser::new(9).fail_until_delayed(&world.iam, ADA).await;
    let path = "/api/auth/verify-password";
    let check = async |signed_in: &Answer, password: &str| {
        let bearer = format!("Bearer {}", signed_in.text("token"));
        let headers = [("authorization", bearer.as_str())];
        let body = json!({ "password": password });
        world.send_unidentified("POST", path, &headers, body).await
    };
    let _ = check(&one, PASSWORD).await.expect(200);
    for _ in 0..5 {
        check(&one, WRONG_PASSWORD)
            .await
            .expect_error(400, "INVALID_PASSWORD");
    }
    check(&one, PASSWORD)
        .await
        .expect_error(429, "RATE_LIMITED");
    let _ = check(&other, PASSWORD).await.expect(200);
    world.tick(1);
    let _ = check(&one, PASSWORD).await.expect(200);
}

#[tokio::test]
async fn nodes_that_share_a_limiter_count_failed_sign_ins_together() {
    let world = World::new();
    world.sign_up(ADA).await;
    let other_node = core_http::iam::service(Arc::clone(&world.app), &iam_config());
    let other_node = Api(other_node.unwrap());
    let mut known = Browser::new(1);
    known.sign_in_successfully(&world.iam, ADA).await;
    Browser::new(9).fail_until_delayed(&world.iam, ADA).await;
    Browser::new(8)
        .assert_sign_in_delayed(&other_node, ADA)
        .await;
    known.sign_in_successfully(&other_node, ADA).await;
}

/// A limiter that cannot be reached.
#[derive(Debug)]
struct Unreachable;

impl Unreachable {
    fn error() -> RateLimiterError {
        let cause = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        RateLimiterError::Unavailable(Box::new(cause))
    }
}

#[async_trait]
impl RateLimiter for Unreachable {
    async fn count_request(
        &self,
        _: RateKey,
        _: &RatePolicy,
        _: Timestamp,
    ) -> Result<Usage, RateLimiterError> {
        Err(Self::error())
    }

    async fn uncount_request(
        &self,
        _: RateKey,
        _: &RatePolicy,
        _: Timestamp,
    ) -> Result<bool, RateLimiterError> {
        Err(Self::error())
    }

    async fn begin_attempt(
        &self,
        _: RateKey,
        _: Timestamp,
    ) -> Result<Option<AttemptRefusal>, RateLimiterError> {
        Err(Self::error())
    }

    async fn forget_attempts(&self, _: RateKey) -> Result<(), RateLimiterError> {
        Err(Self::error())
    }
}

#[tokio::test]
async fn failed_sign_ins_are_counted_in_memory_while_the_limiter_cannot_be_reached() {
    let world = World::with(|app| app.limiter = Arc::new(Unreachable));
    world.sign_up(ADA).await;
    Browser::new(9).fail_until_delayed(&world.iam, ADA).await;
    world.tick(1);
    let mut own = Browser::new(9);
    own.sign_in_successfully(&world.iam, ADA).await;
    own.fail_until_delayed(&world.iam, ADA).await;
}
