//! Refused requests for stacks and apps, and their dry runs.

use core_domain::kernel::{JsonText, TemplateId, Timestamp, VersionId};
use core_domain::stacks::{SemVer, StackVersion, VersionStatus};
use core_domain::testing::named_uuid;
use serde_json::{Value, json};

use super::stacks::{ACTIVATE, CREATE_APP, DEACTIVATE, Harness};
use crate::world::{World, operator, platform_path, resource_body};

async fn expect_refusal(
    harness: &Harness,
    path: &str,
    body: Value,
    status: u16,
    code: &str,
) -> Value {
    let (caller, service) = (operator(), &harness.world.provisioning);
    let refused = service.post(&caller, path, body).await;
    refused.expect_error(status, code).json["error"]["details"].clone()
}

#[tokio::test]
async fn unknown_and_other_tenants_ids_in_a_body_get_404() {
    let harness = Harness::over(World::new()).await;
    let world = &harness.world;
    let other = world.create_platform("looms").await;
    let tenant = world.tenant(&other, "foreign").await;
    let stack = world.workspace_stack(&other, &tenant, "foreign").await;
    for (field, value) in [
        ("platformId", "nobody"),
        ("stackId", "nothing"),
        ("stackVersion", "9.9.9"),
        ("entityId", "nobody"),
        ("entityId", &tenant),
    ] {
        let mut body = harness.activation_body("1.0.0");
        body[field] = json!(value);
        expect_refusal(&harness, ACTIVATE, body, 404, "NOT_FOUND").await;
    }
    for stack in ["nothing", &stack] {
        let app = harness.app(stack, "app");
        expect_refusal(&harness, CREATE_APP, app, 404, "NOT_FOUND").await;
        let body = json!({ "platformId": harness.platform, "stackInstanceId": stack });
        expect_refusal(&harness, DEACTIVATE, body, 404, "NOT_FOUND").await;
    }
    for name in ["1shop", "shop-", "Shop", "s", &"s".repeat(41)] {
        let mut body = harness.app(&stack, "app");
        body["appName"] = json!(name);
        expect_refusal(&harness, CREATE_APP, body, 400, "VALIDATION_ERROR").await;
    }
    assert!(world.jobs(&harness.platform).await.is_empty());
}

#[tokio::test]
async fn requests_that_do_not_fit_the_state_of_a_stack_are_refused() {
    let harness = Harness::over(World::new()).await;
    let world = &harness.world;
    let platform = &harness.platform;
    let _ = world.tenant(platform, "tenant").await;
    let entity = world.tenant(platform, "suspended").await;
    let path = platform_path(platform, &format!("/entities/{entity}"));
    let _ = world
        .patch_record(&path, json!({ "status": "suspended" }))
        .await;
    let mut body = harness.activation_body("1.0.0");
    body["entityId"] = json!(entity);
    expect_refusal(&harness, ACTIVATE, body, 409, "INVALID_STATE").await;

    let (_, stack) = harness.activate("1.0.0").await;
    let mut body =
        json!({ "platformId": platform, "stackInstanceId": stack, "environment": "dev" });
    let details = expect_refusal(&harness, DEACTIVATE, body.clone(), 409, "CONFLICT").await;
    assert_eq!(details, json!({ "environment": "prod" }));
    // Apps can be requested while the stack is being activated, but not after its deactivation was requested.
    body = harness.app(&stack, "svc");
    world.queue_job(&operator(), CREATE_APP, body.clone()).await;
    harness.deactivate(&stack, false).await;
    let details = expect_refusal(&harness, CREATE_APP, body, 409, "INVALID_STATE").await;
    assert_eq!(details["allowedFrom"], json!(["pending", "active"]));
    // The app that was requested earlier is not created either.
    world.finish_jobs().await;
    let jobs = world.jobs(platform).await;
    let app = jobs.iter().find(|job| job["kind"] == "app.create").unwrap();
    assert_eq!(app["error"]["code"], "PRECONDITION_FAILED");
    assert_eq!(harness.status(&stack).await, "inactive");
    assert!(harness.objects().is_empty());
}

#[tokio::test]
async fn a_feature_in_another_version_is_refused_before_anything_is_created() {
    let harness = Harness::over(World::new()).await;
    let world = &harness.world;
    let tenant = world.tenant(&harness.platform, "tenant").await;
    world
        .activate_feature(&harness.platform, &tenant, "search")
        .await;
    let body = harness.activation_body("1.0.0");
    let details = expect_refusal(&harness, ACTIVATE, body, 409, "CONFLICT").await;
    assert_eq!(details["featureVersion"], "1.0.0");
    let stacks = world
        .get_record(&platform_path(&harness.platform, "/stacks"))
        .await;
    assert!(stacks.each("id").is_empty());
}

#[tokio::test]
async fn a_stored_version_with_an_invalid_definition_is_refused_with_its_issues() {
    let harness = Harness::over(World::new()).await;
    let (caller, stacks) = (operator(), &harness.world.stacks);
    let template = stacks.get(&caller, "/api/v1/stacks/shop").await;
    let template = template.json["template"]["id"].clone();
    let now = Timestamp::from_seconds(1_800_000_000);
    let old = StackVersion {
        id: VersionId::parse(&named_uuid("old")).unwrap(),
        template_id: TemplateId::parse(template.as_str().unwrap()).unwrap(),
        version: SemVer::parse("0.1.0").unwrap(),
        stack_definition: JsonText::of(&json!({ "resources": [{ "name": "db" }] })),
        digest: "d".repeat(64),
        core_sdk_version: SemVer::parse("1.0.0").unwrap(),
        status: VersionStatus::Active,
        published_at: now,
        created_at: now,
    };
    harness.world.forge(&old).await;
    let details = expect_refusal(
        &harness,
        ACTIVATE,
        harness.activation_body("0.1.0"),
        409,
        "CONFLICT",
    )
    .await;
    let path = json!(["stackDefinition", "resources", "0"]);
    assert_eq!(details["issues"][0]["path"], path);
}

#[tokio::test]
async fn deprecated_and_empty_versions_can_be_activated_and_app_names_are_protected() {
    let harness = Harness::over(World::new()).await;
    let world = &harness.world;
    harness.publish("0.0.1", json!({})).await;
    let path = "/api/v1/stacks/shop/0.0.1";
    let _ = world.stacks.delete(&operator(), path).await.expect(200);
    let (job, stack) = harness.activate("0.0.1").await;
    world.run_jobs().await;
    let shown = world.job(&job).await;
    assert_eq!(shown["status"], "COMPLETED", "{shown}");
    assert_eq!(shown["input"]["deprecated"], true);
    assert_eq!(harness.status(&stack).await, "active");

    // Another platform tries to record a resource with the name of one of the app's parts.
    let app = harness.app(&stack, "svc");
    let (caller, path) = (operator(), format!("{CREATE_APP}?dryRun=true"));
    let plan = world.provisioning.post(&caller, &path, app.clone()).await;
    let plan = plan.expect(200).json["plan"].clone();
    let planned = plan["resources"].as_array().unwrap();
    assert!(
        planned.iter().all(|part| part["action"] == "create"),
        "{plan}"
    );
    assert_eq!(
        plan["steps"],
        json!([{ "name": "d1:admin-db" }, { "name": "worker:admin-svc" }])
    );
    assert!(
        harness.resource_records().await.is_empty(),
        "a plan records nothing"
    );
    let other = world.create_platform("looms").await;
    let tenant = world.tenant(&other, "tenant").await;
    let name = planned[0]["cfName"].as_str().unwrap();
    let path = platform_path(&other, &format!("/entities/{tenant}/resources"));
    let refused = world
        .registry
        .post(&caller, &path, resource_body(name))
        .await;
    refused.expect_error(409, "CONFLICT");
    world.queue_job(&caller, CREATE_APP, app).await;
    world.run_jobs().await;
    assert_eq!(harness.resource_records().await.len(), 2);
}
