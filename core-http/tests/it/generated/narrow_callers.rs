//! Callers with fewer rights than their role or headers claim: a restricted API key, a member with forged identity
//! headers, a person with an unconfirmed address, and a session without a recent step-up.

use std::cell::RefCell;
use std::collections::BTreeSet;

use core_domain::kernel::{Caller, PermissionSet, Role};
use core_http::kernel::testing::SERVICE_KEY;
use http::Request;
use serde_json::Value;

use super::fixture::{Case, TestRequest, for_each_endpoint};
use super::replays::{PROOF_EXPIRES_AFTER, first_caller};
use super::samples::LowestRole;
use crate::world::{Answer, api_key};

/// Returns an API key of the platform's organization with these permissions.
fn key_with(case: &Case, patterns: &[&str]) -> Caller {
    let mut key = api_key(&case.fixture.ids["platformId"]);
    if let Caller::ApiKey {
        membership: Some(own),
        ..
    } = &mut key
    {
        own.permissions = PermissionSet::new(patterns.to_vec());
    }
    key
}

/// Endpoints that give permissions to others. Their callers must have these permissions themselves.
const GRANTING_OPERATIONS: [&str; 4] =
    ["createGrant", "createInvitation", "mapRole", "removeGrant"];

#[tokio::test]
async fn an_api_key_needs_the_permission_of_the_endpoint_and_no_other() {
    let checked = for_each_endpoint(async |case: &Case| {
        let Some(permission) = case.row().requirement().permission() else {
            return false;
        };
        let of_organization = (LowestRole::Member..=LowestRole::Owner).contains(&case.sample.least);
        if !of_organization {
            return false;
        }
        let (ask, name) = (case.valid_request(), case.name());
        let mut denied = key_with(case, &["*:*"]);
        if let Caller::ApiKey {
            membership: Some(own),
            ..
        } = &mut denied
        {
            own.permissions = PermissionSet::new(["*:*"]).without([permission.as_str()]);
        }
        let refused = case.send(&denied, &ask).await;
        let refusal = (refused.status.as_u16(), refused.code());
        assert_eq!(refusal, (403, "FORBIDDEN"), "{name}: {}", refused.json);
        if GRANTING_OPERATIONS.contains(&name) {
            return true;
        }
        let narrowed = key_with(case, &[permission.as_str()]);
        let answer = case.send(&narrowed, &ask).await;
        assert_ne!(answer.code(), "FORBIDDEN", "{name}: {}", answer.json);
        true
    })
    .await;
    assert_eq!(checked, 134);
}

/// Sends a request with the service key for a member, with headers that claim the rights of an owner and operator.
async fn send_vouched(case: &Case, user: &str, ask: &TestRequest) -> Answer {
    let mut request = Request::builder()
        .method(ask.method.clone())
        .uri(ask.uri())
        .header("authorization", format!("Bearer {SERVICE_KEY}"))
        .header("x-core-user-id", user)
        .header("x-core-platform-id", &case.fixture.ids["platformId"])
        .header("x-core-role", "owner")
        .header("x-core-operator", "true")
        .header("x-core-permissions", "*:*")
        .header("content-type", "application/json");
    for (name, value) in &ask.headers {
        request = request.header(name, value);
    }
    let body = match &ask.body {
        Value::Null => core_http::kernel::empty_body(),
        body => core_http::kernel::bytes_body(body.to_string()),
    };
    case.service.raw(request.body(body).unwrap()).await
}

#[tokio::test]
async fn identity_headers_cannot_raise_the_rights_of_a_member() {
    let checked = for_each_endpoint(async |case: &Case| {
        let least = case.sample.least;
        let above_member = matches!(
            least,
            LowestRole::Admin | LowestRole::Owner | LowestRole::Operator
        );
        if !above_member || case.row().takes_uploads() {
            return false;
        }
        let ask = case.valid_request().without_credentials();
        let world = &case.fixture.world;
        let platform = &case.fixture.ids["platformId"];
        if !case.fixture.ids.contains_key("orgId") {
            world.organization_of(platform).await;
        }
        let member = case.fixture.person.clone();
        world.add_member(platform, &member, Role::MEMBER).await;
        let refused = send_vouched(case, &member.user_id, &ask).await;
        let context = format!("{}: {} {}", case.name(), refused.status, refused.json);
        assert!(matches!(refused.status.as_u16(), 403 | 404), "{context}");
        true
    })
    .await;
    assert_eq!(checked, 114);
}

/// The endpoints that refuse a person with an unconfirmed address.
const NEED_A_CONFIRMED_ADDRESS: [&str; 8] = [
    "acceptInvitation",
    "enableTwoFactor",
    "generatePasskeyRegistrationOptions",
    "getInvitation",
    "getInvitationByPost",
    "rejectInvitation",
    "verifyPasskeyRegistration",
    "verifyTotp",
];

#[tokio::test]
async fn a_person_with_an_unconfirmed_address_cannot_enrol_factors_or_use_invitations() {
    let refused = RefCell::new(BTreeSet::new());
    for_each_endpoint(async |case: &Case| {
        if case.sample.least != LowestRole::Person && case.sample.least != LowestRole::SignedIn {
            return false;
        }
        let person = &case.fixture.person;
        case.fixture.world.set_confirmed(person, false).await;
        let answer = case.send(&person.caller(), &case.valid_request()).await;
        let unproved = "EMAIL_VERIFICATION_REQUIRED_BEFORE_ACCEPTING_OR_REJECTING_INVITATION";
        if ["EMAIL_NOT_VERIFIED", unproved].contains(&answer.code()) {
            assert_eq!(answer.status, 403, "{}", case.name());
            refused.borrow_mut().insert(case.name());
        }
        true
    })
    .await;
    let expected = BTreeSet::from(NEED_A_CONFIRMED_ADDRESS);
    assert_eq!(refused.into_inner(), expected);
}

/// Endpoints that require a step-up only if an owner is added or removed; `iam/step_up.rs` tests them.
const STEP_UP_FOR_OWNERS: [&str; 4] = [
    "createInvitation",
    "inviteMember",
    "removeMember",
    "updateMemberRole",
];

fn documents_step_up(case: &Case) -> bool {
    let codes = &case.operation()["responses"]["403"]["x-codes"];
    let codes = codes.as_array().into_iter().flatten();
    codes.into_iter().any(|code| code == "STEP_UP_REQUIRED")
}

#[tokio::test]
async fn only_the_endpoints_that_document_a_step_up_require_one() {
    let checked = for_each_endpoint(async |case: &Case| {
        if matches!(case.sample.least, LowestRole::Public | LowestRole::Service) {
            return false;
        }
        let (caller, ask) = (first_caller(case), case.valid_request());
        case.fixture.world.tick(PROOF_EXPIRES_AFTER);
        let answer = case.send(&caller, &ask).await;
        let asks = answer.code() == "STEP_UP_REQUIRED";
        let context = format!("{}: {} {}", case.name(), answer.status, answer.json);
        let expected = documents_step_up(case) && !STEP_UP_FOR_OWNERS.contains(&case.name());
        assert_eq!(asks, expected, "{context}");
        asks
    })
    .await;
    assert_eq!(checked, 12);
}
