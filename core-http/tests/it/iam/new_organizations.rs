//! Callers that can create organizations.

use core_domain::gateway::Credential;
use core_domain::kernel::{Caller, Secret};
use core_http::gateway::Authority;
use core_http::iam::SessionAuthority;
use serde_json::{Value, json};

use super::api_keys::OrganizationOwner;
use super::{ADA, ORG_SETUP};
use crate::world::{Answer, World, iam_config, operator, vouched_for};

const CREATE: &str = "/api/auth/organization/create";
const START: &str = "/api/v1/onboarding/start";
const ONBOARD: &str = "/api/v1/provision/onboard";

fn organization_body(slug: &str) -> Value {
    json!({ "name": "New", "platformName": "New", "slug": slug })
}

fn assert_refused(answer: &Answer, status: u16, context: &str) {
    let code = if status == 401 {
        "UNAUTHORIZED"
    } else {
        "FORBIDDEN"
    };
    let refusal = (answer.status.as_u16(), answer.code());
    assert_eq!(refusal, (status, code), "{context}");
}

#[tokio::test]
async fn api_keys_create_no_organizations_whatever_their_permissions() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    for (number, body) in [
        json!({}),
        json!({ "scopes": ["platform:read"] }),
        json!({ "organizationOwned": true, "scopes": ["*:*"] }),
    ]
    .into_iter()
    .enumerate()
    {
        let (_, secret) = ada.key(&world, body.clone()).await;
        let slug = format!("by-key-{number}");
        for (path, status) in [(CREATE, 403), (ORG_SETUP, 401)] {
            let answer = world
                .send_with_key(&secret, "POST", path, organization_body(&slug))
                .await;
            assert_refused(&answer, status, &format!("{path} {body}"));
        }
        let authority = SessionAuthority::new(world.app.store.clone(), &iam_config());
        let credential = Credential::ApiKey(Secret::new(secret));
        let caller = authority.resolve(&credential).await.unwrap().caller;
        let started = world
            .registry
            .post(&caller, START, organization_body(&slug))
            .await;
        assert_refused(&started, 403, &format!("{START} {body}"));
        let mut wanted = organization_body(&slug);
        wanted["onboardingId"] = json!(slug);
        wanted["userId"] = json!(ada.person.user_id);
        let queued = world.provisioning.post(&caller, ONBOARD, wanted).await;
        assert_refused(&queued, 403, &format!("{ONBOARD} {body}"));
    }
}

#[tokio::test]
async fn a_vouched_for_person_creates_organizations_only_with_a_session() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let mut without = vouched_for(ada.caller());
    if let Caller::User { session_id, .. } = &mut without {
        *session_id = None;
    }
    for (caller, create, start) in [
        (operator(), 403, 403),
        (without, 403, 403),
        (vouched_for(ada.caller()), 200, 202),
    ] {
        let created = world
            .iam
            .post(&caller, CREATE, organization_body("created"))
            .await;
        assert_eq!(created.status, create, "{caller:?}: {}", created.json);
        let started = world
            .registry
            .post(&caller, START, organization_body("started"))
            .await;
        assert_eq!(started.status, start, "{caller:?}: {}", started.json);
    }
}
