//! Access to every endpoint: roles, tenants, and suspended or deleted platforms.

use core_domain::kernel::{Caller, PermissionType, permission};
use serde_json::{Value, json};

use super::fixture::{Case, TestRequest, below_platform, description, for_each_endpoint};
use super::samples::{LowestRole, samples};
use crate::world::{
    Answer, World, admin, operator, owner, plain_member, platform_path, user_without_organization,
};

#[test]
fn every_endpoint_has_exactly_one_sample() {
    let world = World::new();
    let rows = world.services().map(|api| api.0.clone());
    let rows = rows.iter().flat_map(|service| service.endpoints());
    let mut rows: Vec<&str> = rows.map(|row| row.operation()).collect();
    let samples = samples();
    let mut sampled: Vec<&str> = samples.iter().map(|sample| sample.operation).collect();
    rows.sort_unstable();
    sampled.sort_unstable();
    assert_eq!(sampled, rows);
}

#[tokio::test]
async fn the_sample_request_of_every_endpoint_succeeds_with_the_lowest_sufficient_role() {
    for_each_endpoint(async |case: &Case| {
        let answer = case.succeed().await;
        let documented = case.row().success().contains(&answer.status);
        assert!(documented, "{}: {}", case.name(), answer.status);
        true
    })
    .await;
}

#[tokio::test]
async fn anonymous_callers_get_401_from_every_endpoint_that_is_not_public() {
    for_each_endpoint(async |case: &Case| {
        let ask = match case.name() {
            // Its cookie identifies the challenge and does not authenticate a user.
            "verifyPasskeyAuthentication" => case.valid_request(),
            // Their cookie belongs to the portal and does not authenticate a user.
            "portalPage" | "changeInPortalByForm" => case.valid_request(),
            _ => case.valid_request().without_credentials(),
        };
        let answer = case.send(&Caller::Anonymous, &ask).await;
        if case.sample.least == LowestRole::Public {
            assert!(answer.is_success(), "{}", case.name());
            return false;
        }
        let refusal = (answer.status.as_u16(), answer.code());
        let code = match case.name() {
            // The code that better-auth uses.
            "createApiKey" => "UNAUTHORIZED_SESSION",
            _ => "UNAUTHORIZED",
        };
        assert_eq!(refusal, (401, code), "{}", case.name());
        true
    })
    .await;
}

#[tokio::test]
async fn callers_with_a_lower_role_get_403() {
    for_each_endpoint(async |case: &Case| {
        let platform = &case.fixture.ids["platformId"];
        let lesser = [
            (LowestRole::SignedIn, user_without_organization()),
            (LowestRole::Member, plain_member(platform)),
            (LowestRole::Admin, admin(platform)),
            (LowestRole::Owner, owner(platform)),
        ];
        let of_platform = (LowestRole::Member..=LowestRole::Owner).contains(&case.sample.least);
        for (least, caller) in lesser
            .into_iter()
            .filter(|(least, _)| *least < case.sample.least)
        {
            // Callers without a membership get 404, tested below. Endpoints for persons have their own tests.
            if case.sample.least == LowestRole::Person
                || (of_platform && least == LowestRole::SignedIn)
            {
                return false;
            }
            let answer = case.send(&caller, &case.valid_request()).await;
            let refusal = (answer.status.as_u16(), answer.code());
            let context = (case.name(), least);
            assert_eq!(refusal, (403, "FORBIDDEN"), "{context:?}: {}", answer.json);
        }
        true
    })
    .await;
}

#[tokio::test]
async fn operators_can_call_every_endpoint_that_is_not_for_persons() {
    for_each_endpoint(async |case: &Case| {
        if case.sample.least == LowestRole::Person {
            return false;
        }
        let answer = case.send(&operator(), &case.valid_request()).await;
        let name = case.name();
        assert!(
            answer.is_success(),
            "{name}: {} {}",
            answer.status,
            answer.json
        );
        true
    })
    .await;
}

/// Returns the status and the body of a refusal, without the request id.
fn refusal(answer: &Answer) -> (u16, Value) {
    let mut json = answer.json.clone();
    json["error"]["requestId"] = Value::Null;
    (answer.status.as_u16(), json)
}

/// Returns the request with the id `own` replaced by `other`.
fn with_id_replaced(ask: &TestRequest, own: &str, other: &str) -> TestRequest {
    let mut ask = ask.clone();
    ask.path = ask.path.replace(own, other);
    ask.query = ask.query.replace(own, other);
    ask.body = serde_json::from_str(&ask.body.to_string().replace(own, other)).unwrap();
    ask
}

#[tokio::test]
async fn another_tenants_platform_or_organization_gets_the_same_404_as_a_missing_one() {
    let checked = for_each_endpoint(async |case: &Case| {
        let ask = case.valid_request();
        let names = |own: &str| {
            let mut words = ask.path.split('/').chain(ask.query.split(['&', '=']));
            words.any(|word| word == own)
                || ["platformId", "orgId"].iter().any(|f| ask.body[f] == own)
        };
        let ids = ["platformId", "orgId"].map(|id| case.fixture.ids.get(id).cloned());
        let own = ids.into_iter().flatten().find(|own| names(own));
        let needs_role = (LowestRole::Member..=LowestRole::Owner).contains(&case.sample.least);
        let Some(own) = own.filter(|_| needs_role) else {
            return false;
        };
        for stranger in case
            .fixture
            .strangers()
            .await
            .into_iter()
            .chain([user_without_organization()])
        {
            let foreign = case.send(&stranger, &ask).await;
            let missing = case
                .send(&stranger, &with_id_replaced(&ask, &own, "nothing"))
                .await;
            assert_eq!(foreign.status, 404, "{}: {}", case.name(), foreign.json);
            assert_eq!(refusal(&foreign), refusal(&missing), "{}", case.name());
        }
        let missing = case
            .send(&operator(), &with_id_replaced(&ask, &own, "nothing"))
            .await;
        assert_eq!(missing.code(), "NOT_FOUND", "{}", case.name());
        true
    })
    .await;
    assert_eq!(checked, 117);
}

/// The ids in bodies and queries of the endpoints for persons.
const PERSON_IDS: [&str; 7] = [
    "organizationId",
    "memberId",
    "invitationId",
    "sentId",
    "keyId",
    "joinedId",
    "passkeyId",
];

#[tokio::test]
async fn ids_in_a_persons_body_or_query_must_exist_and_belong_to_the_person() {
    let checked = for_each_endpoint(async |case: &Case| {
        let ask = case.valid_request();
        let said = format!("{}{}", ask.query, ask.body);
        let ids = PERSON_IDS.iter().filter_map(|id| case.fixture.ids.get(id));
        let own: Vec<&String> = ids.filter(|id| said.contains(*id)).collect();
        if case.sample.least != LowestRole::Person || own.is_empty() {
            return false;
        }
        let stranger = case.fixture.world.sign_up("mallory@example.com").await;
        let foreign = case.send(&stranger.caller(), &ask).await;
        let name = case.name();
        assert!(foreign.status.is_client_error(), "{name}: {}", foreign.json);
        for id in own {
            let missing = with_id_replaced(&ask, id, "nothing");
            let missing = case.send(&case.lowest_caller(), &missing).await;
            assert!(missing.status.is_client_error(), "{name}: {}", missing.json);
        }
        true
    })
    .await;
    assert_eq!(checked, 19);
}

#[tokio::test]
async fn a_platforms_records_are_not_found_below_another_platform() {
    let checked = for_each_endpoint(async |case: &Case| {
        let path = case.row().path();
        let inner = path.matches('{').count() > 1;
        // `setConfig` creates a missing key, and an unknown stack has no usage, so both succeed on another platform too.
        let succeeds = ["setConfig", "getStackUsage"].contains(&case.name());
        if !below_platform(path) || !inner || succeeds {
            return false;
        }
        let other = case.fixture.world.create_platform("other").await;
        let own = case.fixture.ids["platformId"].clone();
        let mut ask = case.valid_request();
        ask.path = ask.path.replace(&own, &other);
        let answer = case.send(&operator(), &ask).await;
        let refusal = (answer.status.as_u16(), answer.code());
        assert_eq!(refusal, (404, "NOT_FOUND"), "{}", case.name());
        true
    })
    .await;
    assert_eq!(checked, 50);
}

#[tokio::test]
async fn unknown_and_malformed_ids_in_a_path_get_404() {
    for_each_endpoint(async |case: &Case| {
        // `checkSlug` accepts unknown slugs, and `followPasswordReset` responds with an HTML page.
        if ["checkSlug", "followPasswordReset"].contains(&case.name()) {
            return false;
        }
        let parameters = case.row().path().split('/').filter(|s| s.starts_with('{'));
        for parameter in parameters {
            let name = parameter.trim_matches(['{', '}']);
            // A config key is a value of a closed set, the name of a secret may be new, and an unknown stack has no usage.
            let is_unused_stack = case.name() == "getStackUsage" && name == "stackId";
            if name == "configKey" || name == "secretName" || is_unused_stack {
                continue;
            }
            let own = case.id_of(name).to_owned();
            for unknown in ["9.9.9-none", "not%20an%20id%21", "%00", &"x".repeat(200)] {
                let mut ask = case.valid_request();
                ask.path = ask.path.replace(&own, unknown);
                let caller = match case.sample.least {
                    LowestRole::Person => case.lowest_caller(),
                    _ => operator(),
                };
                let answer = case.send(&caller, &ask).await;
                let refusal = (answer.status.as_u16(), answer.code());
                let context = (case.name(), name, unknown);
                assert_eq!(refusal, (404, "NOT_FOUND"), "{context:?}: {}", answer.json);
            }
        }
        true
    })
    .await;
}

#[tokio::test]
async fn callers_of_a_suspended_platform_get_451_and_operators_do_not() {
    for_each_endpoint(async |case: &Case| {
        let platform = case.fixture.ids["platformId"].clone();
        let of_platform = (LowestRole::Member..=LowestRole::Owner).contains(&case.sample.least);
        if !of_platform {
            return false;
        }
        let flag = json!({ "platformId": platform, "status": "suspended" });
        let world = &case.fixture.world;
        let flagged = world
            .post_with_service_key("/internal/platform-status", &flag)
            .await;
        let _ = flagged.expect(200);
        let answer = case.send(&owner(&platform), &case.valid_request()).await;
        let refusal = (answer.status.as_u16(), answer.code());
        assert_eq!(refusal, (451, "PLATFORM_SUSPENDED"), "{}", case.name());
        let answer = case.send(&operator(), &case.valid_request()).await;
        let name = case.name();
        assert!(
            answer.status.is_success(),
            "{name}: {} {}",
            answer.status,
            answer.json
        );
        true
    })
    .await;
}

/// The write operations that a deleted platform accepts.
const DELETED_PLATFORM_OPERATIONS: [&str; 3] =
    ["restorePlatform", "hardDeletePlatform", "deletePlatform"];

#[tokio::test]
async fn a_deleted_platform_can_be_read_and_not_written() {
    for_each_endpoint(async |case: &Case| {
        let of_platform = below_platform(case.row().path());
        if !of_platform || DELETED_PLATFORM_OPERATIONS.contains(&case.name()) {
            return false;
        }
        let world = &case.fixture.world;
        let platform = case.fixture.ids["platformId"].clone();
        let deleted = world
            .registry
            .delete(&operator(), &platform_path(&platform, ""))
            .await;
        let _ = deleted.expect(200);
        let answer = case.send(&owner(&platform), &case.valid_request()).await;
        let name = case.name();
        if case.row().method().is_safe() {
            assert!(answer.is_success(), "{name}: {}", answer.json);
        } else {
            assert_eq!(answer.code(), "INVALID_STATE", "{name}: {}", answer.json);
        }
        true
    })
    .await;
}

#[test]
fn the_openapi_document_names_the_permission_of_every_endpoint() {
    let world = World::new();
    let mut count = 0;
    for api in world.services() {
        let document = description(api);
        for row in api.0.endpoints() {
            let method = row.method().as_str().to_ascii_lowercase();
            let described = &document["paths"][row.path()][method]["x-permission"];
            match row.requirement().permission() {
                Some(permission) => {
                    assert_eq!(described, permission.as_str(), "{}", row.operation());
                    count += 1;
                }
                None => assert!(described.is_null(), "{}", row.operation()),
            }
        }
    }
    assert_eq!(count, 145);
    assert_eq!(permission::EntityWrite::PERMISSION.as_str(), "entity:write");
}
