//! The person, platform and role that a token acts for.

use core_domain::kernel::Caller;
use serde_json::{Value, json};

use super::WHOAMI;
use crate::iam::ADA;
use crate::world::{World, api_key, operator};

#[tokio::test]
async fn whoami_reports_the_person_platform_role_and_expiry() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let tokens = world.device_login(&ada).await;
    for (token, end) in [
        (ada.token.as_str(), "2027-01-22T08:00:00.000Z"),
        (tokens.text("access_token"), "2027-01-15T08:15:00.000Z"),
    ] {
        let known = world.whoami(token).await.expect(200);
        let expected = json!({
            "email": ADA, "platformId": made.json["platformId"], "role": "owner", "expiresAt": end,
        });
        assert_eq!(known.json, expected);
    }
}

#[tokio::test]
async fn whoami_refuses_callers_without_a_bearer_token_and_sends_no_details() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let cookie = [
        ("cookie", ada.cookie.as_str()),
        ("origin", "http://iam.test"),
    ];
    let key = format!("Bearer {}", crate::world::SERVICE_KEY);
    let key = [("authorization", key.as_str())];
    let wrong = [("authorization", "Bearer wrong")];
    for (caller, headers) in [
        (Caller::Anonymous, &[][..]),
        (Caller::Anonymous, &cookie),
        (Caller::Anonymous, &key),
        (Caller::Anonymous, &wrong),
        (operator(), &[]),
        (api_key("engines"), &[]),
        (ada.caller(), &[]),
        (ada.caller(), &wrong),
    ] {
        let refused = world
            .iam
            .send(&caller, "POST", WHOAMI, headers, Value::Null)
            .await;
        let fields: Vec<&String> = refused.json["error"].as_object().unwrap().keys().collect();
        assert_eq!(
            fields,
            ["code", "message", "requestId"],
            "{caller:?} {headers:?}"
        );
        refused.expect_error(401, "UNAUTHORIZED");
    }
}
