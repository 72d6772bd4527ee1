//! Onboarding, from the request to the platform.

use core_domain::kernel::Caller;
use serde_json::{Value, json};

use super::world::{How, PLATFORMS, Says, World, at, loner, owner};
use crate::kernel::testing::{Answer, operator};

const START: &str = "/api/v1/onboarding/start";

fn wanted(slug: &str) -> Value {
    json!({ "platformName": "Engines", "slug": slug })
}

impl World {
    async fn status_of(&self, caller: &Caller, started: &Answer) -> Answer {
        let id = started.json["onboardingId"].as_str().unwrap();
        self.get(caller, &format!("/api/v1/onboarding/status/{id}"))
            .await
    }

    async fn is_free(&self, slug: &str) -> Value {
        let path = format!("/api/v1/onboarding/slug/{slug}");
        let answer = self.get(&loner(), &path).await.expect(200);
        assert_eq!(answer.json["slug"], slug);
        answer.json["available"].clone()
    }
}

#[tokio::test]
async fn an_onboarding_ends_with_a_platform_its_tenant_and_six_resources() {
    let world = World::new();
    let caller = world.person().await;
    assert_eq!(world.is_free("engines").await, true);
    let mut body = wanted("engines");
    body["tier"] = json!("free");
    body["billingEmail"] = json!("Leo@Example.org");
    let started = world.post(&caller, START, body).await.expect(202);
    assert_eq!(started.json.as_object().unwrap().len(), 3);
    assert_eq!(started.json["status"], "QUEUED");
    assert_eq!(world.is_free("engines").await, false);
    let status = world.status_of(&caller, &started).await.expect(200).json;
    let known = [
        ("onboardingId", started.json["onboardingId"].clone()),
        ("jobId", started.json["jobId"].clone()),
        ("status", json!("QUEUED")),
        ("platformName", json!("Engines")),
        ("slug", json!("engines")),
        ("tier", json!("free")),
        ("stackTemplateId", Value::Null),
        ("billingEmail", json!("leo@example.org")),
        ("platformId", Value::Null),
        ("completedSteps", json!(0)),
        ("totalSteps", json!(7)),
        ("error", Value::Null),
        ("completedAt", Value::Null),
    ];
    for (field, value) in known {
        assert_eq!(status[field], value, "{field}");
    }
    world.tick(1);
    world.run_jobs().await;
    let status = world.status_of(&caller, &started).await.expect(200).json;
    assert_eq!(
        (&status["status"], &status["completedSteps"]),
        (&json!("COMPLETED"), &json!(7))
    );
    assert!(!status["completedAt"].is_null());
    let platform = status["platformId"].as_str().unwrap();
    let made = world
        .get(&operator(), &at(platform, ""))
        .await
        .expect(200)
        .json;
    assert_eq!(
        (&made["ownerUserId"], &made["tier"]),
        (&json!("leo"), &json!("starter"))
    );
    let entities = world
        .get(&operator(), &at(platform, "/entities"))
        .await
        .expect(200);
    assert_eq!(entities.each("type"), ["tenant"]);
    let resources = world
        .get(&operator(), &at(platform, "/resources"))
        .await
        .expect(200);
    assert_eq!(resources.json["pagination"]["total"], 6);
    assert!(
        resources
            .each("status")
            .iter()
            .all(|status| *status == "active")
    );
    assert!(
        resources
            .each("provisionJobId")
            .iter()
            .all(|job| started.json["jobId"] == *job)
    );
    assert_eq!(world.is_free("engines").await, false);
}

#[tokio::test]
async fn a_slug_is_promised_once() {
    let world = World::new();
    world.platform("engines").await;
    world
        .post(&loner(), START, wanted("engines"))
        .await
        .refused(409, "SLUG_TAKEN");
    world
        .post(&loner(), START, wanted("looms"))
        .await
        .expect(202);
    world
        .post(&operator(), START, wanted("looms"))
        .await
        .refused(409, "SLUG_TAKEN");
    let bad = world
        .get(&loner(), "/api/v1/onboarding/slug/Not%20A%20Slug")
        .await;
    assert_eq!(
        bad.refused(400, "VALIDATION_ERROR").issues(),
        ["slug: pattern"]
    );
}

#[tokio::test]
async fn an_onboarding_is_seen_by_whoever_began_it_and_by_operators() {
    let world = World::new();
    let started = world
        .post(&loner(), START, wanted("engines"))
        .await
        .expect(202);
    world.status_of(&loner(), &started).await.expect(200);
    world.status_of(&operator(), &started).await.expect(200);
    world
        .status_of(&owner("another"), &started)
        .await
        .refused(404, "NOT_FOUND");
    world
        .get(&loner(), "/api/v1/onboarding/status/nothing")
        .await
        .refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn an_onboarding_whose_job_fails_says_why_and_goes_on_when_it_is_retried() {
    let world = World::new();
    world.person().await;
    *world.provider.refuses.lock().unwrap() = true;
    let started = world
        .post(&loner(), START, wanted("engines"))
        .await
        .expect(202);
    world.run_jobs().await;
    let status = world.status_of(&loner(), &started).await.expect(200).json;
    assert_eq!(status["status"], "FAILED");
    assert!(status["error"]["code"].is_string(), "{status}");
    assert!(
        !status["platformId"].is_null(),
        "the platform was made before"
    );
    assert_eq!(world.is_free("engines").await, false);
    *world.provider.refuses.lock().unwrap() = false;
    let job = started.json["jobId"].as_str().unwrap();
    world.operate(job, How::Retry).await;
    world.run_jobs().await;
    let status = world.status_of(&loner(), &started).await.expect(200).json;
    assert_eq!(
        (&status["status"], &status["error"]),
        (&json!("COMPLETED"), &Value::Null)
    );
    let platform = status["platformId"].as_str().unwrap();
    let resources = world
        .get(&operator(), &at(platform, "/resources"))
        .await
        .expect(200);
    assert_eq!(resources.json["pagination"]["total"], 6);
    assert_eq!(
        world.get(&operator(), PLATFORMS).await.json["pagination"]["total"],
        1
    );
}

#[tokio::test]
async fn a_cancelled_onboarding_frees_its_slug() {
    let world = World::new();
    let started = world
        .post(&loner(), START, wanted("engines"))
        .await
        .expect(202);
    let job = started.json["jobId"].as_str().unwrap();
    world.operate(job, How::Cancel).await;
    assert_eq!(world.is_free("engines").await, true);
    let status = world.status_of(&loner(), &started).await.expect(200).json;
    assert_eq!(
        (&status["status"], &status["platformId"]),
        (&json!("FAILED"), &Value::Null)
    );
    world
        .post(&loner(), START, wanted("engines"))
        .await
        .expect(202);
}

#[tokio::test]
async fn what_is_wrong_with_an_onboarding_is_said_at_once() {
    let world = World::new();
    world.person().await;
    let cases = [
        (json!({}), vec!["platformName: required", "slug: required"]),
        (
            json!({ "platformName": "", "slug": "Not A Slug", "tier": "moon", "billingEmail": "nobody", "stackTemplateId": "" }),
            vec![
                "billingEmail: invalid_format",
                "platformName: too_short",
                "slug: pattern",
                "stackTemplateId: too_short",
                "tier: invalid_enum",
            ],
        ),
        (
            json!({ "platformName": "x".repeat(101), "slug": "x".repeat(64), "stackTemplateId": 7 }),
            vec![
                "platformName: too_long",
                "slug: too_long",
                "stackTemplateId: invalid_type",
            ],
        ),
    ];
    for (body, wanted) in cases {
        let refused = world
            .post(&loner(), START, body)
            .await
            .refused(400, "VALIDATION_ERROR");
        assert_eq!(refused.issues(), wanted);
    }
    // Who owns it is not the body's to say.
    let mut body = wanted_of_somebody();
    body["onboardingId"] = json!("chosen");
    let started = world.post(&loner(), START, body).await.expect(202);
    assert_ne!(started.json["onboardingId"], "chosen");
    world.run_jobs().await;
    let owned = world.get(&operator(), PLATFORMS).await.expect(200);
    assert_eq!(owned.each("ownerUserId"), ["leo"]);
}

fn wanted_of_somebody() -> Value {
    let mut body = wanted("engines");
    body["userId"] = json!("somebody");
    body["platformId"] = json!("chosen");
    body
}
