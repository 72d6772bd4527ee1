//! Idempotency keys. The generated tests check for every endpoint that a replay is the same response and takes effect
//! once; these tests check the details.

use std::sync::Arc;

use core_domain::access::SignedInScope;
use core_domain::kernel::{Caller, Error, Result, Role, StoreError, secret_token};
use core_domain::port::UnitOfWork;
use core_http::kernel::testing::member;
use core_http::kernel::{Cx, Input, Output, Service, Versioned, delete, post};
use http::{HeaderValue, header};
use serde_json::{Value, json};

use crate::world::{Answer, Api, World, bare_app, operator};

const STACKS: &str = "/api/v1/stacks";

fn template(name: &str) -> Value {
    json!({ "name": name, "displayName": "Web", "description": "A web stack" })
}

async fn with_key(api: &Api, caller: &Caller, key: &str, body: Value) -> Answer {
    let headers = [("idempotency-key", key)];
    api.send(caller, "POST", STACKS, &headers, body).await
}

#[tokio::test]
async fn quotes_around_a_key_and_the_order_of_body_fields_do_not_matter() {
    let world = World::new();
    let first = with_key(&world.stacks, &operator(), "k1", template("web")).await;
    let reordered = json!({ "description": "A web stack", "displayName": "Web", "name": "web" });
    let again = with_key(&world.stacks, &operator(), "\"k1\"", reordered).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!((again.status, again.json), (first.status, first.json));
}

#[tokio::test]
async fn a_key_can_be_used_again_after_a_day() {
    let world = World::new();
    let _ = with_key(&world.stacks, &operator(), "k1", template("web")).await;
    world.tick(24 * 3_600 - 1);
    let early = with_key(&world.stacks, &operator(), "k1", template("api")).await;
    early.expect_error(422, "IDEMPOTENCY_KEY_REUSED");
    world.tick(1);
    let late = with_key(&world.stacks, &operator(), "k1", template("api")).await;
    let _ = late.expect(201);
}

#[tokio::test]
async fn a_refusal_is_replayed_and_a_validation_error_is_not() {
    let world = World::new();
    let _ = with_key(&world.stacks, &operator(), "k0", template("web")).await;
    let first = with_key(&world.stacks, &operator(), "k1", template("web")).await;
    let first = first.expect_error(409, "CONFLICT");
    let again = with_key(&world.stacks, &operator(), "k1", template("web")).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!((first.status, first.json), (again.status, again.json));
    let invalid = with_key(&world.stacks, &operator(), "k2", json!({})).await;
    invalid.expect_error(400, "VALIDATION_ERROR");
    let corrected = with_key(&world.stacks, &operator(), "k2", template("api")).await;
    let _ = corrected.expect(201);
}

#[tokio::test]
async fn of_concurrent_writes_with_one_key_one_takes_effect() {
    let world = World::new();
    let attempts = (0..16).map(|_| {
        let api = world.stacks.clone();
        tokio::spawn(async move { with_key(&api, &operator(), "k1", template("web")).await })
    });
    let mut ids = Vec::new();
    for attempt in futures_util::future::join_all(attempts).await {
        let answer = attempt.unwrap();
        if answer.status == 201 {
            ids.push(answer.id());
        } else {
            let refused = answer.expect_error(409, "IDEMPOTENCY_IN_PROGRESS");
            assert_eq!(refused.header("retry-after"), "1");
        }
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    let listed = world.stacks.get(&operator(), STACKS).await;
    assert_eq!(listed.json["total"], 1);
}

#[tokio::test]
async fn a_key_has_1_to_255_visible_characters() {
    let world = World::new();
    for bad in ["", "\"\"", "a b", &"k".repeat(256)] {
        let refused = with_key(&world.stacks, &operator(), bad, template("web")).await;
        refused.expect_error(400, "VALIDATION_ERROR");
    }
    let longest = "k".repeat(255);
    let made = with_key(&world.stacks, &operator(), &longest, template("web")).await;
    let _ = made.expect(201);
}

/// Returns a different value on each call, with an entity tag, a header and a cookie.
async fn create_secret(
    cx: &Cx,
    _: SignedInScope,
    _: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Versioned<String>> {
    let secret = secret_token(cx.app.entropy.as_ref(), 20);
    let set = HeaderValue::from_static;
    Ok(Output::new(secret)
        .header(header::LOCATION, set("/things/1"))
        .header(header::SET_COOKIE, set("a=b"))
        .etag("7"))
}

/// Returns two services over one app, with endpoints at the same path. The responses of the second one are secret.
fn services() -> [Api; 2] {
    let app = Arc::new(bare_app().0);
    let service = |name, secret| {
        let row = post("/api/v1/things", "make");
        let row = if secret { row.secret_answer() } else { row };
        let rows = vec![row.writes(create_secret)];
        Api(Service::builder(name, Arc::clone(&app), rows)
            .build()
            .unwrap())
    };
    [service("one", false), service("other", true)]
}

async fn make(api: &Api, caller: &Caller) -> Answer {
    let headers = [("idempotency-key", "k1")];
    let answer = api.send(caller, "POST", "/api/v1/things", &headers, Value::Null);
    answer.await.expect(200)
}

#[tokio::test]
async fn a_replay_has_the_entity_tag_and_headers_of_the_first_response_but_no_cookies() {
    for api in services() {
        let first = make(&api, &operator()).await;
        let again = make(&api, &operator()).await;
        assert_eq!(again.header("idempotency-replayed"), "true");
        assert_eq!(again.json, first.json);
        for answer in [&first, &again] {
            assert_eq!(answer.header("etag"), "\"7\"");
            assert_eq!(answer.header("location"), "/things/1");
            assert_eq!(answer.header("content-type"), "application/json");
        }
        assert_eq!(
            (first.header("set-cookie"), again.header("set-cookie")),
            ("a=b", "")
        );
    }
}

#[tokio::test]
async fn a_key_is_bound_to_its_caller_and_service_in_every_organization() {
    let [one, other] = services();
    let ada = |platform| member("ada", platform, Role::OWNER).unwrap();
    let mut answers = vec![
        make(&one, &operator()).await,
        make(&other, &operator()).await,
    ];
    let vouched = Caller::Service {
        name: "provisioning".to_owned(),
    };
    for caller in [
        vouched,
        ada("p1"),
        member("eve", "p1", Role::OWNER).unwrap(),
    ] {
        answers.push(make(&one, &caller).await);
    }
    let elsewhere = make(&one, &ada("p2")).await;
    assert_eq!(elsewhere.header("idempotency-replayed"), "true");
    assert_eq!(elsewhere.json, answers[3].json);
    let mut bodies: Vec<String> = answers
        .iter()
        .map(|answer| answer.json.to_string())
        .collect();
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), answers.len());
}

async fn refuse<const N: usize>(
    _: &Cx,
    _: SignedInScope,
    _: &mut dyn UnitOfWork,
    _: Input,
) -> Result<()> {
    let (table, index) = ("things", "name");
    let refusals = [
        Error::NotFound("thing"),
        Error::Store(StoreError::Conflict { table, index }),
    ];
    Err(refusals.into_iter().nth(N).unwrap())
}

#[tokio::test]
async fn an_endpoint_without_a_response_body_replays_refusals_and_store_conflicts() {
    let app = Arc::new(bare_app().0);
    let rows = vec![
        delete("/missing", "a").writes(refuse::<0>),
        delete("/taken", "b").writes(refuse::<1>),
    ];
    let api = Api(Service::builder("one", app, rows).build().unwrap());
    for (path, status, code) in [("/missing", 404, "NOT_FOUND"), ("/taken", 409, "CONFLICT")] {
        let headers = [("idempotency-key", path)];
        let mut said = Vec::new();
        for replayed in ["", "true"] {
            let caller = operator();
            let answer = api.send(&caller, "DELETE", path, &headers, Value::Null);
            let answer = answer.await.expect_error(status, code);
            assert_eq!(answer.header("idempotency-replayed"), replayed, "{path}");
            said.push(answer.json["error"]["message"].clone());
        }
        assert_eq!(said[0], said[1], "{path}");
    }
}

#[tokio::test]
async fn an_organization_setup_is_replayed_after_it_changed_the_sessions_organization() {
    let world = World::new();
    let ada = world.sign_up("ada@example.org").await;
    let headers = [
        ("cookie", &*ada.cookie),
        ("origin", "http://iam.test"),
        ("idempotency-key", "k1"),
    ];
    let body = json!({ "name": "Engines", "slug": "engines" });
    let set_up = async || {
        let (method, path) = ("POST", "/api/core/org-setup");
        world
            .iam
            .send(&Caller::Anonymous, method, path, &headers, body.clone())
            .await
    };
    let first = set_up().await.expect(201);
    let again = set_up().await.expect(201);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.json, first.json);
}

#[tokio::test]
async fn a_key_is_the_same_at_every_spelling_of_a_path_and_refuses_other_requests() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let headers = [("idempotency-key", "k1")];
    let create = async |path: &str, slug: &str| {
        let body = json!({ "name": "One", "slug": slug, "type": "tenant" });
        let path = path.replace("{id}", &platform);
        world
            .registry
            .send(&operator(), "POST", &path, &headers, body)
            .await
    };
    let path = "/api/v1/platforms/{id}/entities";
    let first = create(path, "one").await.expect(201);
    // The path without the prefix that a gateway removes is the same operation.
    let alias = create("/{id}/entities", "one").await.expect(201);
    assert_eq!(alias.header("idempotency-replayed"), "true");
    assert_eq!(alias.json, first.json);
    let other = create(path, "two").await;
    other.expect_error(422, "IDEMPOTENCY_KEY_REUSED");
    let elsewhere = world.create_platform("looms").await;
    let other = create(&path.replace("{id}", &elsewhere), "one").await;
    other.expect_error(422, "IDEMPOTENCY_KEY_REUSED");
    let query = create("/api/v1/platforms/{id}/entities?x=1", "one").await;
    query.expect_error(422, "IDEMPOTENCY_KEY_REUSED");
}

#[tokio::test]
async fn a_refusal_of_access_is_not_stored_for_the_key() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let headers = [("idempotency-key", "k1")];
    let path = format!("/api/v1/platforms/{platform}/entities");
    let body = json!({ "name": "One", "slug": "one", "type": "tenant" });
    let create = async |caller: &Caller| {
        world
            .registry
            .send(caller, "POST", &path, &headers, body.clone())
            .await
    };
    let stranger = member("ada", "other", Role::OWNER).unwrap();
    create(&stranger).await.expect_error(404, "NOT_FOUND");
    let now_a_member = member("ada", &platform, Role::OWNER).unwrap();
    let _ = create(&now_a_member).await.expect(201);
}
