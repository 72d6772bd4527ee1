//! The job that creates an organization with its platform, under an id that the caller chooses.

use core_domain::kernel::Caller;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::world::{
    Answer, JobCommand, Person, World, on_every_store, operator, owner, platform_path,
    user_without_organization,
};

const ONBOARD: &str = "/api/v1/provision/onboard";

fn onboarding_body(id: &str, slug: &str, person: &Person) -> Value {
    json!({ "onboardingId": id, "platformName": "Engines", "slug": slug, "userId": person.user_id })
}

impl World {
    async fn provision_onboarding(&self, caller: &Caller, body: Value) -> Answer {
        self.provisioning.post(caller, ONBOARD, body).await
    }

    /// Returns the status of the onboarding to which the caller gave this id.
    async fn onboarding_of(&self, caller: &Caller, id: &str) -> Value {
        let path = format!("/api/v1/onboarding/status/{id}");
        self.registry.get(caller, &path).await.expect(200).json
    }
}

#[tokio::test]
async fn an_onboarding_is_a_job_that_only_its_person_and_operators_see() {
    let world = World::new();
    let ada = world.sign_up("ada@example.org").await;
    let bob = world.sign_up("bob@example.org").await;
    let mut body = onboarding_body("o1", "engines", &ada);
    body["tier"] = json!("growth");
    body["billingEmail"] = json!("Bills@Example.org");
    let caller = ada.caller();
    let id = world.queue_job(&caller, ONBOARD, body).await;
    let job = world.job_for(&caller, &id).await;
    assert_eq!([&job["kind"], &job["environment"]], ["onboard", "prod"]);
    assert!(job["platformId"].is_null() && job.get("fence").is_none());
    let input = &job["input"];
    let told = [&input["planTier"], &input["billingEmail"]];
    assert_eq!(told, ["growth", "bills@example.org"]);
    let steps: Vec<_> = (0..2).map(|step| &job["steps"][step]["name"]).collect();
    assert_eq!(steps, ["platform", "infrastructure"]);
    let maker = json!({ "type": "user", "id": ada.user_id });
    assert_eq!(job["createdBy"], maker);
    assert_eq!(world.job(&id).await["jobId"], *id);
    let path = format!("/api/v1/provision/jobs/{id}");
    for stranger in [bob.caller(), user_without_organization(), owner("engines")] {
        let hidden = world.provisioning.get(&stranger, &path).await;
        hidden.expect_error(404, "NOT_FOUND");
    }
    assert_eq!(world.audit("onboarding.started").await.len(), 1);
}

#[tokio::test]
async fn a_repeated_request_returns_the_same_job_and_another_request_is_refused() {
    let world = World::new();
    let ada = world.sign_up("ada@example.org").await;
    let bob = world.sign_up("bob@example.org").await;
    world.template("web").await;
    let mut body = onboarding_body("o1", "engines", &ada);
    body["stackTemplateId"] = json!("web");
    let id = world.queue_job(&operator(), ONBOARD, body.clone()).await;
    // The repetition gets the first response, even after the job has ended.
    world.run_jobs().await;
    let told = world.onboarding_of(&operator(), "o1").await;
    let mut spelled = body.clone();
    spelled["stackTemplateId"] = told["stackTemplateId"].clone();
    assert_ne!(
        spelled["stackTemplateId"], "web",
        "the template's id replaces its name"
    );
    spelled["tier"] = json!("starter");
    for same in [body.clone(), spelled] {
        assert_eq!(world.queue_job(&operator(), ONBOARD, same).await, id);
    }
    for (field, value) in [
        ("slug", json!("other")),
        ("platformName", json!("Others")),
        ("tier", json!("scale")),
        ("stackTemplateId", Value::Null),
        ("billingEmail", json!("other@example.org")),
        ("userId", json!(bob.user_id)),
    ] {
        let mut other = body.clone();
        other[field] = value;
        let refused = world.provision_onboarding(&operator(), other).await;
        refused.expect_error(422, "IDEMPOTENCY_KEY_REUSED");
    }
    assert_eq!(world.audit("onboarding.started").await.len(), 1);
}

async fn the_onboarding_ids_of_different_callers_are_independent(world: World) {
    let ada = world.sign_up("ada@example.org").await;
    let bob = world.sign_up("bob@example.org").await;
    let (by_ada, by_bob, operator) = (ada.caller(), bob.caller(), operator());
    let mut jobs = Vec::new();
    for (caller, slug, owner) in [
        (&by_ada, "of-ada", &ada),
        (&by_bob, "of-bob", &bob),
        (&operator, "of-the-operator", &ada),
    ] {
        if *caller == operator {
            // A caller who has not used this id gets the newest visible onboarding with it.
            assert_eq!(world.onboarding_of(caller, "o1").await["slug"], "of-bob");
        }
        let body = onboarding_body("o1", slug, owner);
        jobs.push(world.queue_job(caller, ONBOARD, body).await);
        world.tick(1);
    }
    for (caller, job) in [&by_ada, &by_bob, &operator].into_iter().zip(&jobs) {
        assert_eq!(world.onboarding_of(caller, "o1").await["jobId"], **job);
    }
    let body = onboarding_body("o2", "on-behalf", &ada);
    let job = world.queue_job(&operator, ONBOARD, body).await;
    assert_eq!(world.onboarding_of(&by_ada, "o2").await["jobId"], *job);
    let path = "/api/v1/onboarding/status/o2";
    for stranger in [by_bob, user_without_organization()] {
        let hidden = world.registry.get(&stranger, path).await;
        hidden.expect_error(404, "NOT_FOUND");
    }
}

async fn of_concurrent_requests_one_creates_an_onboarding(world: World) {
    let ada = world.sign_up("ada@example.org").await;
    let caller = operator();
    let same =
        (0..8).map(|_| world.queue_job(&caller, ONBOARD, onboarding_body("o1", "engines", &ada)));
    let mut jobs = join_all(same).await;
    jobs.dedup();
    assert_eq!(jobs.len(), 1);
    let ids: Vec<String> = (0..8).map(|number| format!("x{number}")).collect();
    let rivals = ids
        .iter()
        .map(|id| world.provision_onboarding(&caller, onboarding_body(id, "looms", &ada)));
    let answers = join_all(rivals).await;
    let made = answers.iter().filter(|answer| answer.status == 202);
    assert_eq!(made.count(), 1);
    let refused = answers.iter().filter(|a| a.code() == "SLUG_TAKEN");
    assert_eq!(refused.count(), 7);
    assert_eq!(world.audit("onboarding.started").await.len(), 2);
}

on_every_store! {
    the_onboarding_ids_of_different_callers_are_independent,
    of_concurrent_requests_one_creates_an_onboarding,
}

#[tokio::test]
async fn persons_can_onboard_themselves_and_operators_any_existing_user() {
    let world = World::new();
    let ada = world.sign_up("ada@example.org").await;
    let ask = async |caller: &Caller| {
        world
            .provision_onboarding(caller, onboarding_body("o1", "engines", &ada))
            .await
    };
    for other in [user_without_organization(), owner("engines")] {
        ask(&other).await.expect_error(403, "FORBIDDEN");
    }
    let mut body = onboarding_body("o1", "engines", &ada);
    body["userId"] = json!("nobody");
    let unknown = world.provision_onboarding(&operator(), body).await;
    unknown.expect_error(404, "NOT_FOUND");
    let _ = ask(&ada.caller()).await.expect(202);
    // The slug is reserved before the platform exists, and taken afterwards.
    for _ in 0..2 {
        let body = onboarding_body("o2", "engines", &ada);
        let again = world.provision_onboarding(&operator(), body).await;
        again.expect_error(409, "SLUG_TAKEN");
        assert!(!world.is_slug_available("engines").await);
        world.run_jobs().await;
    }
    // An onboarding that is forced to complete before its platform exists has no platform.
    let body = onboarding_body("o3", "looms", &ada);
    let job = world.queue_job(&operator(), ONBOARD, body).await;
    world.operate(&job, JobCommand::ForceComplete).await;
    assert_eq!(world.audit("onboarding.failed").await.len(), 1);
    assert!(world.is_slug_available("looms").await);
}

#[tokio::test]
async fn only_operators_can_give_a_new_platform_more_than_the_entry_tier() {
    let world = World::new();
    let ada = world.sign_up("ada@example.org").await;
    for (id, caller, asked, given) in [
        ("o1", ada.caller(), "scale", "starter"),
        ("o2", operator(), "scale", "scale"),
        ("o3", operator(), "growth", "growth"),
        ("o4", operator(), "free", "starter"),
    ] {
        let mut body = onboarding_body(id, id, &ada);
        body["tier"] = json!(asked);
        world.queue_job(&caller, ONBOARD, body).await;
        world.run_jobs().await;
        let told = world.onboarding_of(&caller, id).await;
        assert_eq!([&told["status"], &told["tier"]], ["COMPLETED", asked]);
        let path = platform_path(told["platformId"].as_str().unwrap(), "");
        let platform = world.registry.get(&operator(), &path).await.expect(200);
        assert_eq!(platform.text("tier"), given);
    }
}

#[tokio::test]
async fn the_stack_template_of_an_onboarding_must_exist_and_be_active() {
    let world = World::new();
    let ada = world.sign_up("ada@example.org").await;
    world.template("web").await;
    let (path, off) = ("/api/v1/stacks/web", json!({ "status": "deprecated" }));
    let _ = world.stacks.patch(&operator(), path, off).await.expect(200);
    let mut body = onboarding_body("o1", "engines", &ada);
    for (template, status, code) in [("nothing", 404, "NOT_FOUND"), ("web", 409, "INVALID_STATE")] {
        body["stackTemplateId"] = json!(template);
        let refused = world.provision_onboarding(&operator(), body.clone()).await;
        refused.expect_error(status, code);
    }
}
