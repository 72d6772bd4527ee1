//! Builds, as changed by jobs and by clients.

use serde_json::{Value, json};

use crate::world::{Answer, JobCommand, PLATFORMS, World, operator, platform_path};

impl World {
    async fn latest_build(&self, platform: &str) -> Answer {
        self.get_record(&platform_path(platform, "/builds/latest"))
            .await
    }

    async fn change_build(&self, platform: &str, build: &str, body: Value) -> Answer {
        let path = platform_path(platform, &format!("/builds/{build}"));
        self.patch_record(&path, body).await
    }

    /// Creates a platform with one build, of a deployment that has not started. Returns the ids of both.
    async fn with_build(&self) -> (String, String) {
        let body = json!({ "name": "E", "slug": "engines", "repoName": "core/engines" });
        let created = self.registry.post(&operator(), PLATFORMS, body).await;
        let platform = created.expect(201).id();
        self.deployment(&platform, &operator()).await;
        let build = self.latest_build(&platform).await.id();
        (platform, build)
    }
}

#[tokio::test]
async fn a_deployment_creates_a_build_and_completes_it() {
    let world = World::new();
    let (platform, build) = world.with_build().await;
    let mut wanted = json!({
        "id": build, "platformId": platform, "environment": "prod", "repoName": "core/engines",
        "lastCommitSha": null, "cfDeploymentId": null, "buildUrl": null, "buildStatus": "building",
        "triggeredBy": "manual", "triggeredAt": "2027-01-15T08:00:00.000Z", "completedAt": null,
        "updatedAt": "2027-01-15T08:00:00.000Z",
    });
    assert_eq!(world.latest_build(&platform).await.json, wanted);
    world.tick(5);
    world.run_jobs().await;
    let done = world.latest_build(&platform).await;
    let url = done.text("buildUrl");
    let (id, at) = (done.text("cfDeploymentId"), "2027-01-15T08:00:05.000Z");
    assert!(
        id.starts_with("deployment-") && url.ends_with("-prod-site.test"),
        "{url}"
    );
    for (field, value) in [
        ("buildStatus", "success"),
        ("cfDeploymentId", id),
        ("buildUrl", url),
        ("completedAt", at),
        ("updatedAt", at),
    ] {
        wanted[field] = json!(value);
    }
    assert_eq!(done.json, wanted);
    assert_eq!(done.header("etag"), "\"2\"");
}

#[tokio::test]
async fn a_build_ends_like_its_deployment() {
    for (how, ended) in [
        (JobCommand::Cancel, "failed"),
        (JobCommand::ForceComplete, "success"),
    ] {
        let world = World::new();
        let (platform, _) = world.with_build().await;
        let job = world.jobs(&platform).await[0]["jobId"].clone();
        world.operate(job.as_str().unwrap(), how).await;
        let build = world.latest_build(&platform).await;
        assert_eq!(build.text("buildStatus"), ended, "{how:?}");
        assert!(build.json["completedAt"].is_string());
    }
    let world = World::new();
    let (platform, build) = world.with_build().await;
    let job = world.jobs(&platform).await[0]["jobId"].clone();
    world.provider.set_failing(true);
    world.run_jobs().await;
    world.provider.set_failing(false);
    world.tick(1);
    assert_eq!(
        world.latest_build(&platform).await.text("buildStatus"),
        "failed"
    );
    world
        .operate(job.as_str().unwrap(), JobCommand::Retry)
        .await;
    let again = world.latest_build(&platform).await;
    let seen = (
        again.id(),
        again.text("buildStatus"),
        &again.json["completedAt"],
    );
    assert_eq!(seen, (build, "building", &Value::Null));
    world.run_jobs().await;
    assert_eq!(
        world.latest_build(&platform).await.text("buildStatus"),
        "success"
    );
}

#[tokio::test]
async fn a_deployment_that_is_cancelled_by_deprovisioning_fails_its_build() {
    let world = World::new();
    let (platform, _) = world.with_build().await;
    let body = json!({ "platformId": platform });
    let path = "/api/v1/provision/platform/deprovision";
    let queued = world.provisioning.post(&operator(), path, body).await;
    let _ = queued.expect(202);
    world.run_jobs().await;
    assert_eq!(
        world.latest_build(&platform).await.text("buildStatus"),
        "failed"
    );
}

#[tokio::test]
async fn every_status_change_is_allowed_and_sets_the_completion_time() {
    const ALL: [&str; 4] = ["unknown", "building", "success", "failed"];
    let world = World::new();
    let (platform, build) = world.with_build().await;
    for from in ALL {
        for to in ALL {
            let start = json!({ "buildStatus": from, "completedAt": null });
            let _ = world
                .change_build(&platform, &build, start)
                .await
                .expect(200);
            world.tick(1);
            let moved = world.change_build(&platform, &build, json!({ "buildStatus": to }));
            let moved = moved.await.expect(200);
            assert_eq!(moved.text("buildStatus"), to);
            let (began, ended) = (&ALL[2..].contains(&from), ALL[2..].contains(&to));
            let left = to == "unknown" && *began;
            assert_eq!(
                moved.json["completedAt"].is_string(),
                ended || left,
                "{from}-{to}"
            );
        }
    }
}

#[tokio::test]
async fn a_change_sets_clears_and_keeps_fields_and_returns_seconds_as_text() {
    let world = World::new();
    let (platform, build) = world.with_build().await;
    let set = json!({
        "buildStatus": "success", "lastCommitSha": "c0ffee", "cfDeploymentId": "cf1",
        "buildUrl": "https://engines.test/", "triggeredBy": "push", "repoName": "core/other",
        "triggeredAt": 1_700_000_000, "completedAt": 1_700_000_060,
    });
    let changed = world.change_build(&platform, &build, set.clone()).await;
    let changed = changed.expect(200).json;
    for (field, value) in set.as_object().unwrap() {
        let value = match field.as_str() {
            "triggeredAt" => &json!("2023-11-14T22:13:20.000Z"),
            "completedAt" => &json!("2023-11-14T22:14:20.000Z"),
            _ => value,
        };
        assert_eq!(&changed[field], value, "{field}");
    }
    let mut wanted = changed;
    let clear = json!({ "lastCommitSha": null, "cfDeploymentId": null, "buildUrl": null, "repoName": null });
    for field in clear.as_object().unwrap().keys() {
        wanted[field] = Value::Null;
    }
    let cleared = world
        .change_build(&platform, &build, clear)
        .await
        .expect(200);
    assert_eq!(cleared.json, wanted);
    let same = world.change_build(&platform, &build, json!({ "buildStatus": "success" }));
    assert_eq!(same.await.expect(200).header("etag"), "\"3\"");
}

#[tokio::test]
async fn seconds_are_accepted_up_to_the_end_of_the_year_9999() {
    let world = World::new();
    let (platform, build) = world.with_build().await;
    for field in ["triggeredAt", "completedAt"] {
        for (seconds, shown) in [
            (0_i64, "1970-01-01T00:00:00.000Z"),
            (253_402_207_201, "9999-12-30T22:00:01.000Z"),
            (253_402_300_799, "9999-12-31T23:59:59.000Z"),
        ] {
            let body = json!({ field: seconds });
            let changed = world.change_build(&platform, &build, body).await;
            assert_eq!(changed.expect(200).text(field), shown);
        }
        for bad in [253_402_300_800, 1_000_000_000_000_000_000, i64::MAX, -1] {
            let body = json!({ field: bad });
            let refused = world.change_build(&platform, &build, body).await;
            refused.expect_error(400, "VALIDATION_ERROR");
        }
    }
}

#[tokio::test]
async fn a_successful_build_stays_unchanged_and_every_other_build_ends_with_its_job() {
    for (said, how, ended) in [
        ("success", JobCommand::Cancel, "success"),
        ("success", JobCommand::ForceComplete, "success"),
        ("failed", JobCommand::ForceComplete, "success"),
        ("unknown", JobCommand::Cancel, "failed"),
    ] {
        let world = World::new();
        let (platform, build) = world.with_build().await;
        let body = json!({ "buildStatus": said, "completedAt": 1_700_000_000 });
        let said = world
            .change_build(&platform, &build, body)
            .await
            .expect(200);
        let job = world.jobs(&platform).await[0]["jobId"].clone();
        world.operate(job.as_str().unwrap(), how).await;
        let build = world.latest_build(&platform).await;
        assert_eq!(build.text("buildStatus"), ended);
        let stayed = build.json == said.json;
        assert_eq!(stayed, said.text("buildStatus") == ended);
    }
}

#[tokio::test]
async fn the_latest_build_is_the_newest_one_of_the_requested_environment() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    world
        .assert_missing(&platform_path(&platform, "/builds/latest"))
        .await;
    world.activate_feature(&platform, &entity, "first").await;
    world.activate_feature(&platform, &entity, "second").await;
    let all = world.get_record(&platform_path(&platform, "/builds")).await;
    let newest = all.each("id")[0].to_owned();
    // A later change does not make an older build the latest one.
    let older = all.each("id")[1].to_owned();
    let later = json!({ "triggeredAt": 1_900_000_000 });
    let _ = world
        .change_build(&platform, &older, later)
        .await
        .expect(200);
    assert_eq!(world.latest_build(&platform).await.id(), newest);
    world
        .assert_missing(&platform_path(&platform, "/builds/latest?env=stg"))
        .await;
    let nowhere = platform_path(&platform, "/builds/latest?env=moon");
    let refused = world.registry.get(&operator(), &nowhere).await;
    refused.expect_error(400, "VALIDATION_ERROR");
    // An invalid request is reported before a missing build.
    for (body, status) in [(json!({ "buildStatus": "done" }), 400), (json!({}), 404)] {
        let answer = world.change_build(&platform, "nothing", body).await;
        assert_eq!(answer.status, status);
    }
}
