//! Queueing the jobs that make and remove a platform's infrastructure.

use core_domain::kernel::{Caller, Environment, JobId, Role};
use core_domain::provisioning::JobStatus;
use core_http::kernel::testing::{Answer, member, operator};
use futures_util::future::join_all;
use http::StatusCode;
use serde_json::{Value, json};

use super::world::{DEPROVISION, PLATFORM, World, queued, refused, tenant, wanted, with_role};

#[tokio::test]
async fn provisioning_queues_the_six_steps_in_the_environment_that_was_asked_for() {
    let world = World::new();
    let platform = world.platform("acme").await;
    for (environment, expected) in [
        (None, Environment::Prod),
        (Some("dev"), Environment::Dev),
        (Some("stg"), Environment::Stg),
        (Some("prod"), Environment::Prod),
    ] {
        let mut body = wanted(&platform);
        body["status"] = json!("COMPLETED");
        if let Some(environment) = environment {
            body["environment"] = json!(environment);
        }
        let id = queued(&world.post(PLATFORM, &operator(), body).await);
        let shown = world.get(&format!("/jobs/{id}"), &operator()).await.json;
        assert_eq!(shown["kind"], "platform");
        assert_eq!(shown["status"], "QUEUED");
        assert_eq!(shown["platformId"], platform.as_str());
        assert_eq!(shown["environment"], expected.as_str());
        let steps = shown["steps"].as_array().unwrap().iter();
        let steps: Vec<&str> = steps.map(|s| s["name"].as_str().unwrap()).collect();
        assert_eq!(steps, ["d1", "kv", "r2", "queue", "worker", "pages"]);
        assert_eq!(shown["input"]["planTier"], "starter");
        assert_eq!(shown["input"]["billingEmail"], "bills@example.org");
        assert_eq!(
            shown["createdBy"],
            json!({ "type": "service", "id": "service-key" })
        );
    }
    assert_eq!(world.audited("platform.provision_queued").await, 4);
}

#[tokio::test]
async fn the_resources_belong_to_the_entity_that_was_named_or_to_the_platforms_own_tenant() {
    let world = World::new();
    let platform = world.platform("acme").await;
    let other = world.platform("other").await;
    let first = queued(&world.post(PLATFORM, &operator(), wanted(&platform)).await);
    let own = world.get(&format!("/jobs/{first}"), &operator()).await;
    let own = own.json["entityId"].clone();
    let mut named = wanted(&platform);
    named["defaultEntityId"] = own.clone();
    let second = queued(&world.post(PLATFORM, &operator(), named.clone()).await);
    let shown = world.get(&format!("/jobs/{second}"), &operator()).await;
    assert_eq!(shown.json["entityId"], own);
    named["defaultEntityId"] = json!("nobody");
    refused(
        &world.post(PLATFORM, &operator(), named).await,
        404,
        "NOT_FOUND",
    );
    let mut foreign = wanted(&other);
    foreign["defaultEntityId"] = own;
    refused(
        &world.post(PLATFORM, &operator(), foreign).await,
        404,
        "NOT_FOUND",
    );
    assert_eq!(world.jobs().await.len(), 2);
}

#[tokio::test]
async fn deprovisioning_goes_before_what_waits_for_the_platform() {
    let world = World::new();
    let platform = world.platform("acme").await;
    let first = queued(&world.post(PLATFORM, &operator(), wanted(&platform)).await);
    let body = json!({ "platformId": platform, "environment": "stg" });
    let removal = queued(&world.post(DEPROVISION, &operator(), body).await);
    let jobs = world.jobs().await;
    let place = |id: &str| {
        let job = jobs.iter().find(|job| job.id.as_str() == id).unwrap();
        (job.lane.clone(), job.lane_position)
    };
    assert_eq!(place(&first).0, place(&removal).0);
    assert!(place(&removal).1 < place(&first).1);
    let shown = world
        .get(&format!("/jobs/{removal}"), &operator())
        .await
        .json;
    assert_eq!(shown["kind"], "platform.deprovision");
    assert_eq!(shown["environment"], "stg");
    let body = json!({ "platformId": platform });
    let removal = queued(&world.post(DEPROVISION, &operator(), body).await);
    let shown = world
        .get(&format!("/jobs/{removal}"), &operator())
        .await
        .json;
    assert_eq!(shown["environment"], "prod");
    assert_eq!(world.audited("platform.deprovision_queued").await, 2);
}

#[tokio::test]
async fn what_is_wrong_with_a_body_is_said_field_by_field_and_nothing_is_queued() {
    let world = World::new();
    let platform = world.platform("acme").await;
    let long = "x".repeat(129);
    let rows = [
        (
            PLATFORM,
            json!({}),
            vec![
                "billingEmail: required",
                "planTier: required",
                "platformId: required",
            ],
        ),
        (
            PLATFORM,
            json!({ "platformId": 1, "planTier": [], "billingEmail": {}, "defaultEntityId": true, "environment": 0 }),
            vec![
                "billingEmail: invalid_type",
                "defaultEntityId: invalid_type",
                "environment: invalid_enum",
                "environment: invalid_type",
                "planTier: invalid_type",
                "platformId: invalid_type",
            ],
        ),
        (
            PLATFORM,
            json!({ "platformId": "", "planTier": "", "billingEmail": "nobody", "defaultEntityId": "", "environment": "moon" }),
            vec![
                "billingEmail: invalid_format",
                "defaultEntityId: too_short",
                "environment: invalid_enum",
                "planTier: too_short",
                "platformId: too_short",
            ],
        ),
        (
            PLATFORM,
            json!({ "platformId": long, "planTier": long, "billingEmail": format!("{long}{long}@example.org"), "defaultEntityId": long }),
            vec![
                "billingEmail: invalid_format",
                "billingEmail: too_long",
                "defaultEntityId: too_long",
                "planTier: too_long",
                "platformId: too_long",
            ],
        ),
        (
            PLATFORM,
            json!({ "platformId": "a b", "planTier": "starter", "billingEmail": null, "environment": null }),
            vec![
                "billingEmail: invalid_type",
                "environment: invalid_enum",
                "environment: invalid_type",
                "platformId: pattern",
            ],
        ),
        (DEPROVISION, json!({}), vec!["platformId: required"]),
        (
            DEPROVISION,
            json!({ "platformId": null, "environment": "PROD" }),
            vec!["environment: invalid_enum", "platformId: invalid_type"],
        ),
        (
            DEPROVISION,
            json!({ "platformId": long }),
            vec!["platformId: too_long"],
        ),
        (DEPROVISION, json!([]), vec![": invalid_type"]),
        (DEPROVISION, json!("text"), vec![": invalid_type"]),
    ];
    for (path, body, issues) in rows {
        let answer = world.post(path, &operator(), body.clone()).await;
        refused(&answer, 400, "VALIDATION_ERROR");
        assert_eq!(answer.issues(), issues, "{path} {body}");
    }
    let nothing = world.post(PLATFORM, &operator(), Value::Null).await;
    refused(&nothing, 400, "VALIDATION_ERROR");
    assert!(world.jobs().await.is_empty());
    queued(&world.post(PLATFORM, &operator(), wanted(&platform)).await);
}

#[tokio::test]
async fn who_may_queue_is_decided_by_platform_and_role() {
    let world = World::new();
    let platform = world.platform("acme").await;
    let other = world.platform("other").await;
    let removal = json!({ "platformId": platform });
    let ask = async |path: &str, caller: &Caller| {
        let body = if path == PLATFORM {
            wanted(&platform)
        } else {
            removal.clone()
        };
        world.post(path, caller, body).await
    };
    for path in [PLATFORM, DEPROVISION] {
        let nobody = ask(path, &Caller::Anonymous).await;
        refused(&nobody, 401, "UNAUTHORIZED");
        assert_eq!(nobody.header("www-authenticate"), "Bearer");
        refused(&ask(path, &tenant(&platform)).await, 403, "FORBIDDEN");
        let foreign = ask(path, &with_role(&other, Role::Owner)).await;
        refused(&foreign, 404, "NOT_FOUND");
        let missing =
            json!({ "platformId": "none", "planTier": "x", "billingEmail": "a@example.org" });
        let missing = world
            .post(path, &with_role(&other, Role::Owner), missing)
            .await;
        refused(&missing, 404, "NOT_FOUND");
        assert_eq!(
            foreign.json["error"]["message"],
            missing.json["error"]["message"]
        );
        queued(&ask(path, &with_role(&platform, Role::Owner)).await);
    }
    queued(&ask(PLATFORM, &with_role(&platform, Role::Admin)).await);
    // Taking everything down is for owners.
    refused(
        &ask(DEPROVISION, &with_role(&platform, Role::Admin)).await,
        403,
        "FORBIDDEN",
    );
    assert_eq!(world.jobs().await.len(), 3);
}

#[tokio::test]
async fn the_same_key_is_the_same_job_and_another_body_under_it_is_refused() {
    let world = World::new();
    let platform = world.platform("acme").await;
    for (path, body) in [
        (PLATFORM, wanted(&platform)),
        (DEPROVISION, json!({ "platformId": platform })),
    ] {
        let first = world
            .post_with_key(path, &operator(), "k1", body.clone())
            .await;
        let id = queued(&first);
        assert_eq!(first.header("idempotency-replayed"), "");
        world.cancel(&id).await;
        let again = world
            .post_with_key(path, &operator(), "k1", body.clone())
            .await;
        assert_eq!(
            queued(&again),
            id,
            "the first answer, whatever the job is by now"
        );
        assert_eq!(again.header("idempotency-replayed"), "true");
        let mut other = body.clone();
        other["environment"] = json!("dev");
        let other = world.post_with_key(path, &operator(), "k1", other).await;
        refused(&other, 422, "IDEMPOTENCY_KEY_REUSED");
        let elsewhere = world
            .post_with_key(path, &with_role(&platform, Role::Owner), "k1", body)
            .await;
        assert_ne!(queued(&elsewhere), id, "a key belongs to its caller");
    }
    let bad = world
        .post_with_key(PLATFORM, &operator(), "not a key", wanted(&platform))
        .await;
    refused(&bad, 400, "VALIDATION_ERROR");
    assert_eq!(world.jobs().await.len(), 4);
}

#[tokio::test]
async fn of_twenty_equal_requests_at_once_one_makes_a_job() {
    let world = World::new();
    let platform = world.platform("acme").await;
    let caller = operator();
    let attempts =
        (0..20).map(|_| world.post_with_key(PLATFORM, &caller, "once", wanted(&platform)));
    let answers = join_all(attempts).await;
    let [job] = <[_; 1]>::try_from(world.jobs().await).unwrap();
    let mut made = 0;
    for answer in &answers {
        if answer.status == StatusCode::ACCEPTED {
            assert_eq!(queued(answer), job.id.as_str());
            made += 1;
        } else {
            refused(answer, 409, "IDEMPOTENCY_IN_PROGRESS");
            assert_eq!(answer.header("retry-after"), "1");
        }
    }
    assert!(made >= 1);
    let later = world
        .post_with_key(PLATFORM, &caller, "once", wanted(&platform))
        .await;
    assert_eq!(queued(&later), job.id.as_str());
}

#[tokio::test]
async fn without_a_key_every_request_is_a_job_of_its_own_in_the_order_they_came() {
    let world = World::new();
    let platform = world.platform("acme").await;
    let caller = operator();
    let attempts = (0..20).map(|_| world.post(PLATFORM, &caller, wanted(&platform)));
    let mut ids: Vec<String> = join_all(attempts).await.iter().map(queued).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 20);
    let mut places: Vec<i64> = world.jobs().await.iter().map(|j| j.lane_position).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 20);
}

#[tokio::test]
async fn a_suspended_platform_takes_jobs_and_holds_them_but_not_its_deprovisioning() {
    let world = World::new();
    let platform = world.platform("acme").await;
    world.move_platform(&platform, "suspend").await;
    let id = queued(&world.post(PLATFORM, &operator(), wanted(&platform)).await);
    let body = json!({ "platformId": platform });
    let removal = queued(&world.post(DEPROVISION, &operator(), body).await);
    let reason = async |id: &str| {
        let shown = world.get(&format!("/jobs/{id}"), &operator()).await;
        shown.json["holdReason"].clone()
    };
    assert_eq!(reason(&id).await, "suspension");
    assert_eq!(reason(&removal).await, Value::Null);
    world.move_platform(&platform, "restore").await;
    assert_eq!(reason(&id).await, Value::Null);
}

#[tokio::test]
async fn nothing_is_queued_for_a_platform_that_is_being_removed_or_is_deleted() {
    let world = World::new();
    let platform = world.platform("acme").await;
    world.move_platform(&platform, "delete").await;
    let before = world.jobs().await.len();
    assert_eq!(before, 1, "the job that removes it");
    refused(
        &world.post(PLATFORM, &operator(), wanted(&platform)).await,
        409,
        "INVALID_STATE",
    );
    let removal = json!({ "platformId": platform });
    refused(
        &world.post(DEPROVISION, &operator(), removal).await,
        409,
        "INVALID_STATE",
    );
    assert_eq!(world.jobs().await.len(), before);

    let deleted = world.platform("gone").await;
    let path = format!("/{deleted}");
    let done = world
        .in_registry("DELETE", &path, &operator(), Value::Null)
        .await;
    assert_eq!(done.status, StatusCode::OK);
    let answer: Answer = world.post(PLATFORM, &operator(), wanted(&deleted)).await;
    refused(&answer, 409, "INVALID_STATE");
    assert_eq!(answer.json["error"]["details"]["status"], "deleted");
    // What is left of it can be taken down.
    queued(
        &world
            .post(DEPROVISION, &operator(), json!({ "platformId": deleted }))
            .await,
    );
}

#[tokio::test]
async fn a_member_of_the_organization_reaches_the_jobs_of_all_its_platforms() {
    let world = World::new();
    let own = world.platform("own").await;
    let owner = with_role(&own, Role::Owner);
    let body = json!({ "name": "Second", "slug": "second" });
    let second = world.in_registry("POST", "", &owner, body).await;
    let second = second.json["id"].as_str().unwrap().to_owned();
    let id = queued(&world.post(PLATFORM, &owner, wanted(&second)).await);
    let path = format!("/jobs/{id}");
    assert_eq!(world.get(&path, &owner).await.status, StatusCode::OK);
    let listed = world
        .get(&format!("/jobs?platformId={second}"), &owner)
        .await;
    assert_eq!(listed.json["data"][0]["jobId"], id.as_str());
    let stranger = member("eve", "elsewhere", Role::Owner).unwrap();
    refused(&world.get(&path, &stranger).await, 404, "NOT_FOUND");
    let listed = world
        .get(&format!("/jobs?platformId={second}"), &stranger)
        .await;
    refused(&listed, 404, "NOT_FOUND");
    let job = world.jobs().await.remove(0);
    assert_eq!(
        (job.id, job.status),
        (JobId::parse(&id).unwrap(), JobStatus::Queued)
    );
}
