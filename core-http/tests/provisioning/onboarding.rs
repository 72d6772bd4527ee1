//! Queueing the job that makes an organization with its platform and infrastructure.

use core_domain::kernel::{Caller, Role, UserId};
use core_http::kernel::testing::{member, operator};
use futures_util::future::join_all;
use http::StatusCode;
use serde_json::{Value, json};

use super::world::{ONBOARD, World, queued, refused, tenant};

/// A signed-in person who acts for nothing yet.
fn person(id: &str) -> Caller {
    Caller::User {
        user_id: UserId::parse(id).unwrap(),
        session_id: None,
        membership: None,
    }
}

fn wanted(id: &str, slug: &str, user: &str) -> Value {
    json!({ "onboardingId": id, "platformName": "Engines", "slug": slug, "userId": user })
}

async fn world_with_ada() -> World {
    let world = World::new();
    world.user("ada").await;
    world
}

#[tokio::test]
async fn an_onboarding_queues_its_job_which_its_person_alone_sees() {
    let world = world_with_ada().await;
    let mut body = wanted("o1", "engines", "ada");
    body["stackTemplateId"] = json!("t1");
    body["tier"] = json!("growth");
    body["billingEmail"] = json!("Bills@Example.org");
    let ada = person("ada");
    let id = queued(&world.post(ONBOARD, &ada, body).await);
    let path = format!("/jobs/{id}");
    let shown = world.get(&path, &ada).await;
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.json);
    assert_eq!(shown.json["kind"], "onboard");
    assert_eq!(shown.json["platformId"], Value::Null);
    assert_eq!(shown.json["idempotencyKey"], "onboarding:o1");
    assert_eq!(shown.json["input"]["onboardingId"], "o1");
    assert_eq!(shown.json["input"]["planTier"], "growth");
    assert_eq!(shown.json["input"]["billingEmail"], "bills@example.org");
    assert_eq!(shown.json["steps"].as_array().unwrap().len(), 7);
    assert_eq!(
        shown.json["createdBy"],
        json!({ "type": "user", "id": "ada" })
    );
    let foreign = member("eve", "p1", Role::Owner).unwrap();
    refused(&world.get(&path, &person("eve")).await, 404, "NOT_FOUND");
    refused(&world.get(&path, &foreign).await, 404, "NOT_FOUND");
    assert_eq!(world.get(&path, &operator()).await.status, StatusCode::OK);
    assert_eq!(world.audited("onboarding.started").await, 1);
}

#[tokio::test]
async fn the_same_onboarding_is_the_same_job_and_anything_else_under_its_id_is_refused() {
    let world = world_with_ada().await;
    let body = wanted("o1", "engines", "ada");
    let id = queued(&world.post(ONBOARD, &operator(), body.clone()).await);
    world.cancel(&id).await;
    let again = world.post(ONBOARD, &operator(), body.clone()).await;
    assert_eq!(
        queued(&again),
        id,
        "the first answer, whatever the job is by now"
    );
    let mut with_defaults = body.clone();
    with_defaults["tier"] = json!("starter");
    with_defaults["stackTemplateId"] = Value::Null;
    assert_eq!(
        queued(&world.post(ONBOARD, &operator(), with_defaults).await),
        id
    );
    for (field, value) in [
        ("slug", json!("other")),
        ("platformName", json!("Others")),
        ("tier", json!("scale")),
        ("stackTemplateId", json!("t2")),
        ("billingEmail", json!("other@example.org")),
    ] {
        let mut other = body.clone();
        other[field] = value;
        let answer = world.post(ONBOARD, &operator(), other).await;
        refused(&answer, 422, "IDEMPOTENCY_KEY_REUSED");
    }
    assert_eq!(world.jobs().await.len(), 1);
    let with_key = world
        .post_with_key(ONBOARD, &operator(), "k", body.clone())
        .await;
    assert_eq!(queued(&with_key), id);
    let other = world
        .post_with_key(ONBOARD, &operator(), "k", wanted("o2", "b", "ada"))
        .await;
    refused(&other, 422, "IDEMPOTENCY_KEY_REUSED");
}

#[tokio::test]
async fn of_twenty_equal_onboardings_at_once_one_makes_a_job() {
    let world = world_with_ada().await;
    let caller = operator();
    let attempts = (0..20).map(|_| world.post(ONBOARD, &caller, wanted("o1", "engines", "ada")));
    let answers = join_all(attempts).await;
    let [job] = <[_; 1]>::try_from(world.jobs().await).unwrap();
    for answer in &answers {
        assert_eq!(queued(answer), job.id.as_str());
    }
    assert_eq!(world.audited("onboarding.started").await, 1);
}

#[tokio::test]
async fn of_twenty_onboardings_with_one_slug_one_gets_it() {
    let world = world_with_ada().await;
    let caller = operator();
    let attempts = (0..20).map(|n| {
        let body = wanted(&format!("o{n}"), "engines", "ada");
        let (world, caller) = (&world, &caller);
        async move { world.post(ONBOARD, caller, body).await }
    });
    let answers = join_all(attempts).await;
    let (made, others): (Vec<_>, Vec<_>) = answers
        .iter()
        .partition(|a| a.status == StatusCode::ACCEPTED);
    assert_eq!(made.len(), 1);
    for other in others {
        refused(other, 409, "SLUG_TAKEN");
    }
    assert_eq!(world.jobs().await.len(), 1);
}

#[tokio::test]
async fn a_slug_of_a_platform_is_taken() {
    let world = world_with_ada().await;
    world.platform("engines").await;
    let answer = world
        .post(ONBOARD, &operator(), wanted("o1", "engines", "ada"))
        .await;
    refused(&answer, 409, "SLUG_TAKEN");
}

#[tokio::test]
async fn people_onboard_themselves_and_operators_anybody_they_know() {
    let world = world_with_ada().await;
    let ask = async |caller: &Caller, user: &str| {
        world
            .post(ONBOARD, caller, wanted("o1", "engines", user))
            .await
    };
    refused(&ask(&Caller::Anonymous, "ada").await, 401, "UNAUTHORIZED");
    refused(&ask(&person("eve"), "ada").await, 403, "FORBIDDEN");
    refused(&ask(&tenant("p1"), "bob").await, 403, "FORBIDDEN");
    refused(&ask(&operator(), "nobody").await, 404, "NOT_FOUND");
    assert!(world.jobs().await.is_empty());
    queued(&ask(&person("ada"), "ada").await);
}

#[tokio::test]
async fn what_is_wrong_with_a_body_is_said_field_by_field() {
    let world = world_with_ada().await;
    let long = "x".repeat(129);
    for (body, issues) in [
        (
            json!({}),
            vec![
                "onboardingId: required",
                "platformName: required",
                "slug: required",
                "userId: required",
            ],
        ),
        (
            json!({ "onboardingId": 1, "platformName": 2, "slug": 3, "userId": 4, "stackTemplateId": 5, "tier": 6, "billingEmail": 7 }),
            vec![
                "billingEmail: invalid_type",
                "onboardingId: invalid_type",
                "platformName: invalid_type",
                "slug: invalid_type",
                "stackTemplateId: invalid_type",
                "tier: invalid_enum",
                "tier: invalid_type",
                "userId: invalid_type",
            ],
        ),
        (
            json!({ "onboardingId": "", "platformName": "", "slug": "", "userId": "", "tier": "huge", "billingEmail": "nobody" }),
            vec![
                "billingEmail: invalid_format",
                "onboardingId: too_short",
                "platformName: too_short",
                "slug: pattern",
                "slug: too_short",
                "tier: invalid_enum",
                "userId: too_short",
            ],
        ),
        (
            json!({ "onboardingId": long, "platformName": long, "slug": long, "userId": long, "stackTemplateId": long }),
            vec![
                "onboardingId: too_long",
                "platformName: too_long",
                "slug: too_long",
                "stackTemplateId: too_long",
                "userId: too_long",
            ],
        ),
        (wanted("o1", "Not A Slug", "ada"), vec!["slug: pattern"]),
    ] {
        let answer = world.post(ONBOARD, &operator(), body.clone()).await;
        refused(&answer, 400, "VALIDATION_ERROR");
        assert_eq!(answer.issues(), issues, "{body}");
    }
    assert!(world.jobs().await.is_empty());
    for (n, tier) in ["free", "starter", "growth", "scale"].iter().enumerate() {
        let mut body = wanted(&format!("o{n}"), &format!("s{n}"), "ada");
        body["tier"] = json!(tier);
        queued(&world.post(ONBOARD, &operator(), body).await);
    }
}
