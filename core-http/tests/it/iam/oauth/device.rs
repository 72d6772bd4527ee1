//! Device login: codes, decisions and polls.

use core_domain::kernel::Caller;
use futures_util::future::join_all;
use serde_json::json;

use crate::iam::{ADA, EVE, NEW_PASSWORD};
use crate::world::{PASSWORD, World, api_key, on_every_store, operator};

on_every_store! { an_approved_device_code_signs_in_once }

async fn an_approved_device_code_signs_in_once(world: World) {
    let ada = world.sign_up(ADA).await;
    let codes = world.device_codes().await;
    assert_eq!(codes.header("cache-control"), "no-store");
    let user_code = codes.text("user_code");
    assert_eq!((user_code.len(), &user_code[4..5]), (9, "-"));
    assert_eq!(codes.text("device_code").len(), 43);
    assert_eq!(codes.text("verification_uri"), "http://iam.test/device");
    let complete = format!("http://iam.test/device?user_code={user_code}");
    assert_eq!(codes.text("verification_uri_complete"), complete);
    assert_eq!(
        (&codes.json["expires_in"], &codes.json["interval"]),
        (&json!(600), &json!(5))
    );

    let device_code = codes.text("device_code");
    world
        .poll(device_code)
        .await
        .expect_error(400, "authorization_pending");
    let written = user_code.to_lowercase().replace('-', " ");
    for _ in 0..2 {
        let decided = world.decide(&ada, &written, "approve").await.expect(200);
        assert_eq!(decided.json, json!({ "ok": true }));
    }
    // After the decision the polling interval no longer applies.
    let polls = join_all((0..4).map(|_| world.poll(device_code))).await;
    let (granted, refused): (Vec<_>, Vec<_>) =
        polls.into_iter().partition(|poll| poll.status == 200);
    assert_eq!((granted.len(), refused.len()), (1, 3));
    for poll in refused {
        poll.expect_error(400, "invalid_grant");
    }
    let tokens = &granted[0];
    assert_eq!(
        (tokens.text("token_type"), &tokens.json["expires_in"]),
        ("bearer", &json!(900))
    );
    assert_eq!(tokens.header("cache-control"), "no-store");
    let known = world.whoami(tokens.text("access_token")).await.expect(200);
    assert_eq!(known.json["email"], ADA);
    assert_eq!(world.session_expiries(&ada.token).await.len(), 2);
    for action in [
        "device_authorization.approved",
        "device_authorization.redeemed",
        "token.issued",
    ] {
        assert_eq!(world.audit(action).await.len(), 1, "{action}");
    }
}

#[tokio::test]
async fn polling_too_often_lengthens_the_interval_by_five_seconds() {
    let world = World::new();
    let codes = world.device_codes().await;
    let device_code = codes.text("device_code");
    for (pause, code) in [
        (0, "authorization_pending"),
        (4, "slow_down"),
        (9, "slow_down"),
        (15, "authorization_pending"),
        (14, "slow_down"),
        (20, "authorization_pending"),
    ] {
        world.tick(pause);
        world.poll(device_code).await.expect_error(400, code);
    }
}

#[tokio::test]
async fn denied_and_expired_devices_get_no_tokens() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let codes = world.device_codes().await;
    let (user_code, device_code) = (codes.text("user_code"), codes.text("device_code"));
    let _ = world.decide(&ada, user_code, "deny").await.expect(200);
    world
        .decide(&ada, user_code, "approve")
        .await
        .expect_error(409, "INVALID_STATE");
    world
        .poll(device_code)
        .await
        .expect_error(400, "access_denied");
    assert_eq!(world.audit("device_authorization.denied").await.len(), 1);

    let late = world.device_codes().await;
    let approved = world.approve_device(&ada).await;
    world.tick(600);
    for code in [late.text("device_code"), &approved] {
        world.poll(code).await.expect_error(400, "expired_token");
    }
    let decided = world.decide(&ada, late.text("user_code"), "approve").await;
    decided.expect_error(400, "expired_token");
    world
        .poll("unknown")
        .await
        .expect_error(400, "invalid_grant");
}

on_every_store! { ending_a_persons_sessions_revokes_their_unused_approvals }

async fn ending_a_persons_sessions_revokes_their_unused_approvals(world: World) {
    let ada = world.sign_up(ADA).await;
    let eve = world.sign_up(EVE).await;
    let kept = world.approve_device(&eve).await;
    let body = json!({
        "currentPassword": PASSWORD, "newPassword": NEW_PASSWORD, "revokeOtherSessions": true
    });
    for (path, body) in [
        ("/api/auth/revoke-other-sessions", json!({})),
        ("/api/auth/change-password", body),
    ] {
        let approved = [
            world.approve_device(&ada).await,
            world.approve_device(&ada).await,
        ];
        let _ = world.iam.post(&ada.caller(), path, body).await.expect(200);
        for device_code in approved {
            world
                .poll(&device_code)
                .await
                .expect_error(400, "access_denied");
        }
        world.tick(1);
    }
    assert_eq!(world.audit("device_authorization.revoked").await.len(), 4);
    let _ = world.poll(&kept).await.expect(200);
}

#[tokio::test]
async fn a_device_acts_for_the_organization_active_at_approval() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let before = world.approve_device(&ada).await;
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let after = world.approve_device(&ada).await;
    for (device_code, platform, role) in [
        (before, json!(null), json!(null)),
        (after, made.json["platformId"].clone(), json!("owner")),
    ] {
        let tokens = world.poll(&device_code).await.expect(200);
        let known = world.whoami(tokens.text("access_token")).await.expect(200);
        assert_eq!(
            (&known.json["platformId"], &known.json["role"]),
            (&platform, &role)
        );
    }
}

#[tokio::test]
async fn five_wrong_user_codes_block_the_session_and_address_and_right_codes_do_not_count() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    for _ in 0..8 {
        world.approve_device(&ada).await;
    }
    let good = world.device_codes().await;
    for wrong in ["BCDF-GHJK", "nonsense", "BCDFGHJK", "0", "ZZZZ-ZZZZ"] {
        world
            .decide(&ada, wrong, "approve")
            .await
            .expect_error(404, "NOT_FOUND");
    }
    for person in [&ada, &eve] {
        let refused = world
            .decide(person, good.text("user_code"), "approve")
            .await;
        assert_eq!(refused.header("retry-after"), "600");
        refused.expect_error(429, "RATE_LIMITED");
    }
    world.tick(600);
    let again = world.device_codes().await;
    let _ = world
        .decide(&ada, again.text("user_code"), "approve")
        .await
        .expect(200);
}

#[tokio::test]
async fn only_a_person_with_a_browser_session_approves_a_device() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let codes = world.device_codes().await;
    let path = "/oauth/device/authorize";
    let body = json!({ "user_code": codes.text("user_code") });
    for nobody in [Caller::Anonymous, operator(), api_key("engines")] {
        let refused = world.iam.post(&nobody, path, body.clone()).await;
        refused.expect_error(401, "UNAUTHORIZED");
    }
    let tokens = world.device_login(&ada).await;
    let bearer = format!("Bearer {}", tokens.text("access_token"));
    let by_device = [("authorization", bearer.as_str())];
    let refused = world
        .send_unidentified("POST", path, &by_device, body.clone())
        .await;
    refused.expect_error(403, "FORBIDDEN");
    let by_cookie = [
        ("cookie", ada.cookie.as_str()),
        ("origin", "http://iam.test"),
    ];
    let _ = world
        .send_unidentified("POST", path, &by_cookie, body)
        .await
        .expect(200);
    let _ = world.poll(codes.text("device_code")).await.expect(200);
}

#[tokio::test]
async fn unknown_codes_and_tokens_are_refused_without_a_write_transaction() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let device_code = world.approve_device(&ada).await;
    let before = world.store.write_units();
    for unknown in ["", "nonsense", ada.token.as_str()] {
        world.poll(unknown).await.expect_error(400, "invalid_grant");
        world
            .refresh(unknown)
            .await
            .expect_error(400, "invalid_grant");
    }
    assert_eq!(world.store.write_units(), before);
    let tokens = world.poll(&device_code).await.expect(200);
    assert_eq!(world.store.write_units(), before + 1);
    let _ = world
        .refresh(tokens.text("refresh_token"))
        .await
        .expect(200);
    assert_eq!(world.store.write_units(), before + 2);
}
