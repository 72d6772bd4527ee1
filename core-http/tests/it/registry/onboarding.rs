//! Onboarding: its result, its visibility, and the slug that it reserves.

use core_domain::kernel::Caller;
use serde_json::{Value, json};

use crate::world::{
    Answer, JobCommand, PLATFORMS, World, operator, owner, platform_path, user_without_organization,
};

const START: &str = "/api/v1/onboarding/start";

impl World {
    async fn start_onboarding(&self, caller: &Caller, slug: &str) -> Answer {
        let body = json!({ "platformName": "Engines", "slug": slug });
        self.registry.post(caller, START, body).await
    }

    async fn onboarding_status(&self, caller: &Caller, id: &str) -> Answer {
        let path = format!("/api/v1/onboarding/status/{id}");
        self.registry.get(caller, &path).await
    }
}

/// Returns the values of these fields.
fn fields<const N: usize>(shown: &Value, names: [&str; N]) -> [Value; N] {
    names.map(|name| shown[name].clone())
}

#[tokio::test]
async fn an_onboarding_creates_a_platform_with_a_tenant_and_resources_for_its_person() {
    let world = World::new();
    world.template("web").await;
    let person = world.sign_up("ada@example.org").await;
    let caller = person.caller();
    assert!(world.is_slug_available("engines").await);
    let body = json!({
        "platformName": " Engines ", "slug": "engines", "tier": "scale", "stackTemplateId": "web",
        "billingEmail": "Ada@Example.org",
    });
    let started = world.registry.post(&caller, START, body).await.expect(202);
    let (id, job) = (started.text("onboardingId"), started.text("jobId"));
    let wanted = json!({ "onboardingId": id, "jobId": job, "status": "QUEUED" });
    assert_eq!(started.json, wanted);
    assert!(!world.is_slug_available("engines").await);
    let view = world.onboarding_status(&caller, id).await.expect(200).json;
    let path = "/api/v1/stacks/web";
    let template = world.stacks.get(&operator(), path).await.expect(200).json;
    let now = "2027-01-15T08:00:00.000Z";
    let wanted = json!({
        "onboardingId": id, "jobId": job, "status": "QUEUED", "platformName": "Engines", "slug": "engines",
        "tier": "scale", "stackTemplateId": template["template"]["id"], "billingEmail": "ada@example.org",
        "platformId": null, "completedSteps": 0, "totalSteps": 3, "message": view["message"], "error": null,
        "createdAt": now, "updatedAt": now, "completedAt": null,
    });
    assert_eq!(view, wanted);
    world.tick(1);
    world.finish_jobs().await;
    let view = world.onboarding_status(&caller, id).await.expect(200).json;
    let ended = fields(&view, ["status", "completedSteps", "error"]);
    assert_eq!(ended, [json!("COMPLETED"), json!(3), Value::Null]);
    let stacks = world
        .get_record(&platform_path(
            view["platformId"].as_str().unwrap(),
            "/stacks",
        ))
        .await;
    let stack = fields(&stacks.json["data"][0], ["templateId", "status"]);
    assert_eq!(stack, [template["template"]["id"].clone(), json!("active")]);
    assert!(view["completedAt"].as_str() > Some(now) && view["updatedAt"].as_str() > Some(now));
    let platform = view["platformId"].as_str().unwrap();
    assert_eq!(world.active_platform(&person).await, view["platformId"]);
    let shown = world.get_record(&platform_path(platform, "")).await;
    // The requested tier takes effect only when billing or an operator grants it.
    let shown = fields(&shown.json, ["ownerUserId", "tier", "slug"]);
    assert_eq!(
        shown,
        [json!(person.user_id), json!("starter"), json!("engines")]
    );
    for (list, count) in [("/entities", 1), ("/resources", 6)] {
        assert_eq!(
            world.count(&platform_path(platform, list)).await,
            count,
            "{list}"
        );
    }
    assert!(!world.is_slug_available("engines").await);
    assert_eq!(world.audit("onboarding.completed").await.len(), 1);
}

#[tokio::test]
async fn an_onboarding_by_an_operator_gets_the_requested_tier() {
    let world = World::new();
    let person = world.sign_up("ada@example.org").await;
    for (asked, given) in [
        ("free", "starter"),
        ("starter", "starter"),
        ("growth", "growth"),
        ("scale", "scale"),
    ] {
        let body = json!({
            "onboardingId": asked, "userId": person.user_id, "platformName": "Engines",
            "slug": asked, "tier": asked,
        });
        let path = "/api/v1/provision/onboard";
        let queued = world.provisioning.post(&operator(), path, body).await;
        let _ = queued.expect(202);
        world.run_jobs().await;
        world.tick(1);
        let listed = world.registry.get(&operator(), PLATFORMS).await;
        let shown = fields(&listed.json["data"][0], ["slug", "tier", "ownerUserId"]);
        assert_eq!(shown, [json!(asked), json!(given), json!(person.user_id)]);
    }
}

#[tokio::test]
async fn the_slug_of_a_pending_onboarding_is_reserved_for_it() {
    let world = World::new();
    let deleted = world.create_platform("old").await;
    world.delete_record(&platform_path(&deleted, "")).await;
    assert!(world.is_slug_available("old").await);
    let person = world.sign_up("ada@example.org").await;
    let new = json!({ "name": "Others", "slug": "old" });
    let caller = person.caller();
    let _ = world.start_onboarding(&caller, "old").await.expect(202);
    let back = json!({ "status": "active" });
    let refusals = [
        world.start_onboarding(&caller, "old").await,
        world.registry.post(&operator(), PLATFORMS, new).await,
        world.set_up_organization(&person, "old").await,
        world
            .change_lifecycle(&deleted, "restore", &operator())
            .await,
        world.patch_record(&platform_path(&deleted, ""), back).await,
    ];
    for refused in refusals {
        refused.expect_error(409, "SLUG_TAKEN");
    }
    world.run_jobs().await;
    assert_eq!(world.platform_count().await, 1);
    let again = world
        .start_onboarding(&user_without_organization(), "old")
        .await;
    again.expect_error(409, "SLUG_TAKEN");
}

#[tokio::test]
async fn the_slug_of_an_organization_is_taken_and_a_malformed_slug_is_refused() {
    let world = World::new();
    let person = world.sign_up("ada@example.org").await;
    let set_up = world
        .set_up_organization(&person, "engines")
        .await
        .expect(201);
    world
        .delete_record(&platform_path(set_up.text("platformId"), ""))
        .await;
    assert!(!world.is_slug_available("engines").await);
    let path = "/api/v1/onboarding/slug/Not%20A%20Slug";
    let bad = world.registry.get(&user_without_organization(), path).await;
    let bad = bad.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(bad.issues(), ["slug: pattern"]);
}

#[tokio::test]
async fn an_onboarding_is_visible_to_its_requester_its_person_and_operators() {
    let world = World::new();
    let stranger = owner("another");
    let person = user_without_organization();
    let started = world.start_onboarding(&person, "a-persons").await;
    let started = started.expect(202);
    let id = started.text("onboardingId");
    for caller in [person, operator()] {
        let _ = world.onboarding_status(&caller, id).await.expect(200);
    }
    let refused = world.onboarding_status(&stranger, id).await;
    refused.expect_error(404, "NOT_FOUND");
    // An id that a caller chooses is separate for each caller.
    let [ada, eve] = ["ada@example.org", "eve@example.org"].map(|email| world.sign_up(email));
    let (ada, eve) = (ada.await, eve.await);
    for (caller, person, slug) in [(operator(), &ada, "adas"), (eve.caller(), &eve, "eves")] {
        let body = json!({
            "onboardingId": "given", "userId": person.user_id, "platformName": "P", "slug": slug,
        });
        let path = "/api/v1/provision/onboard";
        let queued = world.provisioning.post(&caller, path, body).await;
        let _ = queued.expect(202);
    }
    for (person, slug) in [(&ada, "adas"), (&eve, "eves")] {
        let seen = world.onboarding_status(&person.caller(), "given").await;
        let seen = fields(&seen.expect(200).json, ["slug", "onboardingId"]);
        assert_eq!(seen, [json!(slug), json!("given")]);
    }
    let refused = world.onboarding_status(&stranger, "given").await;
    refused.expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_template_must_exist_and_be_active() {
    let world = World::new();
    world.template("web").await;
    let deprecated = json!({ "status": "deprecated" });
    let path = "/api/v1/stacks/web";
    let set = world.stacks.patch(&operator(), path, deprecated).await;
    let _ = set.expect(200);
    for (template, status, code) in [("web", 409, "INVALID_STATE"), ("nothing", 404, "NOT_FOUND")] {
        let body = json!({ "platformName": "P", "slug": "p", "stackTemplateId": template });
        let refused = world
            .registry
            .post(&user_without_organization(), START, body)
            .await;
        refused.expect_error(status, code);
    }
    assert!(world.is_slug_available("p").await);
}

#[tokio::test]
async fn a_cancelled_onboarding_frees_its_slug() {
    let world = World::new();
    let started = world
        .start_onboarding(&user_without_organization(), "engines")
        .await
        .expect(202);
    world
        .operate(started.text("jobId"), JobCommand::Cancel)
        .await;
    assert!(world.is_slug_available("engines").await);
    let id = started.text("onboardingId");
    let view = world
        .onboarding_status(&user_without_organization(), id)
        .await
        .expect(200)
        .json;
    let shown = fields(&view, ["status", "platformId"]);
    assert_eq!(shown, [json!("FAILED"), Value::Null]);
    let again = world
        .start_onboarding(&user_without_organization(), "engines")
        .await;
    let _ = again.expect(202);
}

#[tokio::test]
async fn an_onboarding_with_failed_infrastructure_keeps_its_platform_and_can_be_retried() {
    let world = World::new();
    world.provider.set_failing(true);
    let person = world.sign_up("ada@example.org").await.caller();
    let started = world.start_onboarding(&person, "engines").await;
    let started = started.expect(202);
    let view = async || {
        let id = started.text("onboardingId");
        world
            .onboarding_status(&operator(), id)
            .await
            .expect(200)
            .json
    };
    world.finish_jobs().await;
    let failed = view().await;
    let shown = [&failed["status"], &failed["error"]["code"]];
    assert_eq!(shown, ["FAILED", "PLATFORM_JOB_FAILED"]);
    assert!(!world.is_slug_available("engines").await);
    world.provider.set_failing(false);
    let platform = failed["platformId"].as_str().unwrap();
    let job = world.jobs(platform).await[0]["jobId"].clone();
    for job in [job.as_str().unwrap(), started.text("jobId")] {
        world.operate(job, JobCommand::Retry).await;
        world.finish_jobs().await;
    }
    let done = fields(&view().await, ["status", "error", "platformId"]);
    assert_eq!(done, [json!("COMPLETED"), Value::Null, json!(platform)]);
    assert_eq!(world.count(&platform_path(platform, "/resources")).await, 6);
    assert_eq!(world.platform_count().await, 1);
}
