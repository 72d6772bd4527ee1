//! Tests of Pages: projects, direct uploads and deployments.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use core_cloudflare_fake::{DeploymentEnd, Fault, Kind, Matcher, Settings};
use serde_json::{Value, json};

use super::world::{PAGE, World, file};

const PROJECTS: &str = "/accounts/{a}/pages/projects";
const SITE: &str = "/accounts/{a}/pages/projects/site";

/// Creates a world with a project, one uploaded file and a token.
async fn with_site(settings: Settings) -> (World, String) {
    let world = World::start_with(settings).await;
    world.create_project("site").await;
    let token = world.upload_token("site").await;
    assert_eq!(
        world
            .assets(&token, "upload", &json!([file(PAGE.0, PAGE.1)]))
            .await
            .status,
        200
    );
    (world, token)
}

fn manifest() -> Value {
    json!({"/index.html": PAGE.0})
}

/// Polls a deployment until it has ended, and returns its last stage.
async fn await_end(world: &World, id: &Value) -> (String, String) {
    loop {
        let path = format!("{SITE}/deployments/{}", id.as_str().unwrap());
        let stage = world.get(&path).await.result()["latest_stage"].clone();
        if !matches!(stage["status"].as_str().unwrap(), "active" | "idle") {
            let text = |name: &str| stage[name].as_str().unwrap().to_owned();
            return (text("name"), text("status"));
        }
    }
}

#[tokio::test]
async fn variables_are_merged_and_secret_values_are_hidden() {
    let world = World::start().await;
    world.create_project("site").await;
    let patch =
        |variables: Value| json!({"deployment_configs": {"production": {"env_vars": variables}}});
    let first = json!({"S": {"type": "secret_text", "value": "hidden"}, "V": {"type": "plain_text", "value": "v"}});
    let shown = world.patch(SITE, patch(first)).await.result();
    assert!(!shown.to_string().contains("hidden"));
    world
        .patch(
            SITE,
            patch(json!({"V": null, "W": {"type": "plain_text", "value": "w"}})),
        )
        .await
        .result();
    let variables = world.fake.pages_variables("site", "production");
    assert_eq!(json!(variables), json!({"S": "hidden", "W": "w"}));
    assert!(world.fake.pages_variables("site", "preview").is_empty());
    for wrong in [
        patch(json!({"V": {"type": "plain_text"}})),
        patch(json!(null)),
        json!({"deployment_configs": {"production": 7}}),
        json!({"deployment_configs": {"staging": {}}}),
    ] {
        assert_eq!(world.patch(SITE, wrong).await.failure(), (400, 8_000_001));
    }
}

#[tokio::test]
async fn project_gets_another_subdomain_if_its_name_is_taken() {
    let settings = Settings {
        taken_pages_subdomains: vec!["taken".to_owned()],
        ..Settings::default()
    };
    let world = World::start_with(settings).await;
    assert_eq!(
        world.create_project("free").await["subdomain"],
        "free.pages.dev"
    );
    let other = world.create_project("taken").await["subdomain"].clone();
    assert!(other != "taken.pages.dev" && other.as_str().unwrap().starts_with("taken-"));
    let again = json!({"name": "free", "production_branch": "main"});
    assert_eq!(
        world.post(PROJECTS, again).await.failure(),
        (409, 8_000_002)
    );
    assert_eq!(
        world
            .post(
                PROJECTS,
                json!({"name": "Upper", "production_branch": "main"})
            )
            .await
            .status,
        400
    );
    assert_eq!(
        world.get(&format!("{PROJECTS}/gone")).await.failure(),
        (404, 8_000_007)
    );
    assert_eq!(
        world
            .get(&format!("{PROJECTS}/gone/upload-token"))
            .await
            .failure(),
        (404, 8_000_007)
    );
}

#[tokio::test]
async fn only_missing_files_are_requested_and_production_serves_them() {
    let (world, token) = with_site(Settings::default()).await;
    let other = "0".repeat(32);
    let missing = world
        .assets(&token, "check-missing", &json!({"hashes": [PAGE.0, other]}))
        .await
        .result();
    assert_eq!(missing, json!([other]));
    let deployment = world.deploy("site", &manifest(), "main").await.result();
    assert_eq!(
        deployment["deployment_trigger"]["metadata"]["commit_hash"],
        "our-deployment-id"
    );
    assert_eq!(
        (
            &deployment["environment"],
            &deployment["latest_stage"]["name"]
        ),
        (&json!("production"), &json!("queued"))
    );
    assert_eq!(world.fake.pages_file("site", "/index.html"), None);
    assert_eq!(
        await_end(&world, &deployment["id"]).await,
        ("deploy".to_owned(), "success".to_owned())
    );
    assert_eq!(
        world.fake.pages_file("site", "/index.html").unwrap(),
        PAGE.1
    );
    let preview = world.deploy("site", &json!({}), "topic").await.result();
    await_end(&world, &preview["id"]).await;
    assert_eq!(preview["environment"], "preview");
    assert_eq!(
        world.fake.pages_file("site", "/index.html").unwrap(),
        PAGE.1
    );
    let all = world.get(&format!("{SITE}/deployments")).await.result();
    assert_eq!(
        (&all[0]["id"], &all[1]["id"]),
        (&preview["id"], &deployment["id"])
    );
}

#[tokio::test]
async fn manifest_must_refer_to_existing_files_with_valid_hashes() {
    let (world, token) = with_site(Settings::default()).await;
    let wrong = "1".repeat(32);
    world
        .assets(&token, "upload", &json!([file(&wrong, PAGE.1)]))
        .await;
    for (manifest, why) in [
        (json!({"/a.html": "0".repeat(32)}), "was not uploaded"),
        (json!({"/a.html": wrong}), "not the file's"),
        (json!({"/a.htm": PAGE.0}), "not the file's"),
        (json!({"a.html": PAGE.0}), "slash"),
        (json!(["/a.html"]), "manifest"),
    ] {
        let reply = world.deploy("site", &manifest, "main").await;
        assert_eq!(reply.status, 400);
        assert!(
            reply.json()["errors"][0]["message"]
                .as_str()
                .unwrap()
                .contains(why),
            "{manifest}"
        );
    }
    assert_eq!(world.fake.count(Kind::PagesDeployment), 0);
}

#[tokio::test]
async fn uploads_are_limited() {
    let (world, token) = with_site(Settings::default()).await;
    let named = |number: usize, size: usize| file(&format!("{number:032x}"), &vec![0; size]);
    let upload = |files: Vec<Value>| {
        let (world, token) = (&world, &token);
        async move { world.assets(token, "upload", &json!(files)).await.status }
    };
    assert_eq!(
        upload((0..2000).map(|number| named(number, 1)).collect()).await,
        200
    );
    assert_eq!(
        upload((0..2001).map(|number| named(number, 1)).collect()).await,
        400
    );
    let mebi = 1024 * 1024;
    assert_eq!(
        upload(vec![named(0, 25 * mebi), named(1, 15 * mebi)]).await,
        200
    );
    assert_eq!(
        upload(vec![named(0, 25 * mebi), named(1, 15 * mebi + 1)]).await,
        413
    );
    assert_eq!(upload(vec![named(0, 25 * mebi + 1)]).await, 413);
    assert_eq!(
        upload(vec![
            json!({"key": "short", "value": "", "metadata": {"contentType": ""}, "base64": true})
        ])
        .await,
        400
    );
}

#[tokio::test]
async fn upload_tokens_contain_their_expiry_and_can_be_expired() {
    let settings = Settings {
        upload_token_exp: 12,
        max_pages_files: 1,
        ..Settings::default()
    };
    let (world, token) = with_site(settings).await;
    let payload = URL_SAFE_NO_PAD
        .decode(token.split('.').nth(1).unwrap())
        .unwrap();
    let payload: Value = serde_json::from_slice(&payload).unwrap();
    assert_eq!(
        (&payload["exp"], &payload["max_file_count_allowed"]),
        (&json!(12), &json!(1))
    );
    let two = json!({"/a.html": PAGE.0, "/b.html": PAGE.0});
    assert_eq!(world.deploy("site", &two, "main").await.status, 400);
    let hashes = json!({"hashes": []});
    world
        .fake
        .inject(Matcher::new("POST", "/pages/assets/*"), Fault::TokenExpired);
    for _ in 0..2 {
        assert_eq!(
            world
                .assets(&token, "check-missing", &hashes)
                .await
                .failure(),
            (401, 8_000_013)
        );
    }
    let next = world.upload_token("site").await;
    world.assets(&next, "check-missing", &hashes).await.result();
    world.fake.expire_upload_tokens();
    assert_eq!(
        world
            .assets(&next, "check-missing", &hashes)
            .await
            .failure(),
        (401, 8_000_013)
    );
    let last = world.upload_token("site").await;
    world.assets(&last, "check-missing", &hashes).await.result();
    let forged = last.replace(last.split('.').nth(1).unwrap(), &STANDARD.encode("{}"));
    assert_eq!(
        world
            .assets(&forged, "check-missing", &hashes)
            .await
            .failure(),
        (401, 8_000_013)
    );
}

#[tokio::test]
async fn failed_deployment_has_its_reason_in_the_last_log_line() {
    let (world, _) = with_site(Settings::default()).await;
    world
        .fake
        .end_deployment(DeploymentEnd::Failure("Error: out of luck".to_owned()));
    world.fake.end_deployment(DeploymentEnd::Canceled);
    let failed = world.deploy("site", &manifest(), "main").await.result();
    let canceled = world.deploy("site", &manifest(), "main").await.result();
    assert_eq!(await_end(&world, &failed["id"]).await.1, "failure");
    assert_eq!(await_end(&world, &canceled["id"]).await.1, "canceled");
    let path = format!("{SITE}/deployments/{}", failed["id"].as_str().unwrap());
    let logs = world.get(&format!("{path}/history/logs")).await.result();
    let last = logs["data"].as_array().unwrap().last().unwrap();
    assert_eq!(last["line"], "Error: out of luck");
    assert_eq!(world.fake.pages_file("site", "/index.html"), None);
}

#[tokio::test]
async fn project_with_a_domain_is_not_deleted() {
    let world = World::start().await;
    world.create_project("site").await;
    let domains = format!("{SITE}/domains");
    let made = world
        .post(&domains, json!({"name": "www.example.org"}))
        .await
        .result();
    assert_eq!(made["status"], "initializing");
    assert_eq!(
        world
            .post(&domains, json!({"name": "www.example.org"}))
            .await
            .failure(),
        (409, 8_000_018)
    );
    let path = format!("{domains}/www.example.org");
    assert_eq!(world.get(&path).await.result()["status"], "pending");
    assert_eq!(
        world.patch(&path, Value::Null).await.result()["verification_data"]["status"],
        "active"
    );
    assert_eq!(world.delete(SITE).await.failure(), (400, 8_000_028));
    world.delete(&path).await.result();
    world.delete(SITE).await.result();
    assert_eq!(world.fake.count(Kind::PagesProject), 0);
}
