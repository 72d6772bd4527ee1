//! Refresh tokens: a single exchange, its repetition for ten seconds, and the end of the family after reuse.

use std::sync::Arc;

use core_http::iam::service;
use futures_util::future::{join, join_all};

use crate::iam::{ADA, DAY, SESSIONS};
use crate::world::{Answer, Api, World, iam_config, on_every_store};

on_every_store! {
    fifty_concurrent_exchanges_of_one_token_return_the_same_tokens,
    reuse_of_a_refresh_token_ends_its_family_at_once,
    an_exchange_during_a_revocation_returns_no_usable_tokens,
    fifty_concurrent_reuses_end_a_family_once,
}

fn pair(answer: &Answer) -> [String; 2] {
    ["access_token", "refresh_token"].map(|field| answer.text(field).to_owned())
}

async fn fifty_concurrent_exchanges_of_one_token_return_the_same_tokens(world: World) {
    let ada = world.sign_up(ADA).await;
    let first = world.device_login(&ada).await;
    let token = first.text("refresh_token");
    let answers = join_all((0..50).map(|_| world.refresh(token))).await;
    let mut pairs: Vec<_> = answers.into_iter().map(|a| pair(&a.expect(200))).collect();
    pairs.dedup();
    assert_eq!(pairs.len(), 1);
    assert_eq!(world.audit("token.refreshed").await.len(), 1);
    let [access, refresh] = &pairs[0];
    for access in [access.as_str(), first.text("access_token")] {
        let _ = world.whoami(access).await.expect(200);
    }
    let _ = world.refresh(refresh).await.expect(200);
    assert_eq!(world.session_expiries(&ada.token).await.len(), 2);
}

async fn reuse_of_a_refresh_token_ends_its_family_at_once(world: World) {
    let ada = world.sign_up(ADA).await;
    // The reuse comes too late, or in time but after the use of the successor.
    for successor_is_used in [false, true] {
        let first = world.device_login(&ada).await;
        let second = world.refresh(first.text("refresh_token")).await.expect(200);
        let mut newest = second.clone();
        if successor_is_used {
            newest = world
                .refresh(second.text("refresh_token"))
                .await
                .expect(200);
        } else {
            world.tick(10);
            let again = world.refresh(first.text("refresh_token")).await.expect(200);
            assert_eq!(pair(&again), pair(&second));
            assert_eq!(again.json["expires_in"], 890);
            world.tick(1);
        }
        let reused = world.refresh(first.text("refresh_token")).await;
        reused.expect_error(400, "invalid_grant");
        for answer in [&first, &second, &newest] {
            let [access, refresh] = pair(answer);
            world
                .whoami(&access)
                .await
                .expect_error(401, "UNAUTHORIZED");
            world
                .refresh(&refresh)
                .await
                .expect_error(400, "invalid_grant");
        }
        assert_eq!(world.session_expiries(&ada.token).await.len(), 1);
    }
    let entries = world.audit("token.reuse_detected").await;
    assert_eq!(entries.len(), 2);
    assert!(entries.iter().all(|entry| entry.actor_id == ada.user_id));
}

async fn fifty_concurrent_reuses_end_a_family_once(world: World) {
    let ada = world.sign_up(ADA).await;
    let first = world.device_login(&ada).await;
    let token = first.text("refresh_token");
    let second = world.refresh(token).await.expect(200);
    let _ = world
        .refresh(second.text("refresh_token"))
        .await
        .expect(200);
    let answers = join_all((0..50).map(|_| world.refresh(token))).await;
    for answer in answers {
        answer.expect_error(400, "invalid_grant");
    }
    assert_eq!(world.audit("token.reuse_detected").await.len(), 1);
}

async fn an_exchange_during_a_revocation_returns_no_usable_tokens(world: World) {
    let ada = world.sign_up(ADA).await;
    for _ in 0..5 {
        let first = world.device_login(&ada).await;
        let token = first.text("refresh_token");
        let list = world
            .send_with_bearer(&ada.token, "GET", SESSIONS)
            .await
            .expect(200);
        let sessions = list.json["data"].as_array().unwrap();
        let of_device = sessions.iter().find(|s| s["current"] == false).unwrap();
        let path = format!("{SESSIONS}/{}", of_device["id"].as_str().unwrap());
        let refreshes = join_all((0..8).map(|_| world.refresh(token)));
        let revoke = world.send_with_bearer(&ada.token, "DELETE", &path);
        let (answers, revoked) = join(refreshes, revoke).await;
        let _ = revoked.expect(200);
        for answer in answers {
            if answer.status != 200 {
                answer.expect_error(400, "invalid_grant");
                continue;
            }
            let [access, refresh] = pair(&answer);
            world
                .whoami(&access)
                .await
                .expect_error(401, "UNAUTHORIZED");
            world
                .refresh(&refresh)
                .await
                .expect_error(400, "invalid_grant");
        }
        world
            .whoami(first.text("access_token"))
            .await
            .expect_error(401, "UNAUTHORIZED");
    }
}

#[tokio::test]
async fn a_lost_response_can_be_repeated_after_a_restart() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let first = world.device_login(&ada).await;
    let token = first.text("refresh_token");
    let lost = world.refresh(token).await.expect(200);
    let app = Arc::new(world.app.as_ref().clone());
    let restarted = World {
        iam: Api(service(app, &iam_config()).unwrap()),
        ..world
    };
    let again = restarted.refresh(token).await.expect(200);
    assert_eq!(pair(&again), pair(&lost));
}

#[tokio::test]
async fn a_token_family_lasts_thirty_days_unused_and_ninety_days_in_use() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let unused = world.device_login(&ada).await;
    let mut used = world.device_login(&ada).await;
    for day in [29, 30, 58, 87, 89] {
        let passed = world.clock_day();
        world.tick((day - passed) * DAY);
        if day == 30 {
            world
                .refresh(unused.text("refresh_token"))
                .await
                .expect_error(400, "invalid_grant");
            continue;
        }
        used = world.refresh(used.text("refresh_token")).await.expect(200);
        assert_eq!(used.json["expires_in"], 900);
    }
    let token = used.text("refresh_token").to_owned();
    world.tick(DAY - 60);
    let last = world.refresh(&token).await.expect(200);
    assert_eq!(last.json["expires_in"], 60, "no token outlives its family");
    world.tick(60);
    world
        .whoami(last.text("access_token"))
        .await
        .expect_error(401, "UNAUTHORIZED");
    world
        .refresh(last.text("refresh_token"))
        .await
        .expect_error(400, "invalid_grant");
    assert_eq!(world.audit("token.reuse_detected").await.len(), 0);
}

#[tokio::test]
async fn tokens_are_stored_only_hashed_or_encrypted() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let first = world.device_login(&ada).await;
    let second = world.refresh(first.text("refresh_token")).await.expect(200);
    let stored = world.stored_refresh_tokens().await;
    for answer in [&first, &second] {
        for token in pair(answer) {
            assert!(!stored.contains(&token));
        }
    }
    let _ = world
        .refresh(second.text("refresh_token"))
        .await
        .expect(200);
    // Only the newest response can be repeated.
    let sealed = world.stored_refresh_tokens().await;
    assert_eq!(sealed.matches("sealed_successor: Some").count(), 1);
}

impl World {
    /// Returns the number of days since the start of the test.
    fn clock_day(&self) -> u64 {
        use core_domain::kernel::Clock;
        let began = crate::world::manual_clock().now();
        self.clock.now().since(began).as_secs() / DAY
    }

    async fn stored_refresh_tokens(&self) -> String {
        use core_domain::access::RecordKey;
        use core_domain::iam::RefreshTokenQuery;
        use core_domain::kernel::Timestamp;
        use core_domain::port::{Mode, Within};
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let tokens = uow.repositories(RecordKey::for_tests()).refresh_tokens();
        let far = RefreshTokenQuery::ExpiredAt(Timestamp::from_seconds(9_000_000_000));
        let all = tokens.list(Within::Installation, &far, 100).await.unwrap();
        format!("{all:?}")
    }
}
