//! Sites at Cloudflare, through the whole suite.

use core_cloudflare_fake::{FakeCloudflare, Settings};
use core_domain::kernel::hex;
use core_http::kernel::testing::Answer;
use core_suite::Suite;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::world::{Call, Installation, PlatformMember, archive_of, sign_up, suite_at_cloudflare};

const FILES: [(&str, &str); 3] = [
    ("index.html", "<h1>first</h1>"),
    ("css/site.css", "h1 { color: teal }"),
    ("_redirects", "/old /new 301"),
];

/// Sends a request that starts a deployment, and waits until it is live. Returns the response to the request.
async fn go_live(suite: &Suite, person: &PlatformMember, call: Call) -> Answer {
    let accepted = suite.send("gateway", call).await.expect(202);
    let id = accepted.text("deploymentId");
    let path = format!("{}/deployments/{id}", cli(person));
    let ended = suite
        .until(&person.token, &path, &["active", "failure", "canceled"])
        .await;
    assert_eq!(ended.text("status"), "active", "{}", ended.json);
    accepted
}

fn cli(person: &PlatformMember) -> String {
    format!("/api/v1/cli/platforms/{}", person.platform)
}

fn by(person: &PlatformMember, call: Call) -> Call {
    call.bearer(&person.token)
}

fn preview(person: &PlatformMember, archive: Vec<u8>) -> Call {
    let call = person.deployment(archive);
    call.header("x-core-deploy-branch", "redesign")
}

#[tokio::test]
async fn a_preview_at_cloudflare_is_promoted_and_later_deploys_send_only_changed_files() {
    let settings = Settings {
        deployment_polls: 0,
        ..Settings::default()
    };
    let fake = FakeCloudflare::start_with(settings).await.unwrap();
    let (_fresh, suite) = suite_at_cloudflare(&fake, |builder| builder).await;
    let person = sign_up(&suite, "engines", "Engines").await;
    let job = person.job(&suite).await;
    person.job_done(&suite, &job).await;

    let shown = go_live(&suite, &person, preview(&person, archive_of(&FILES))).await;
    let project = shown.text("projectName").to_owned();
    let file = |path: &str| {
        let content = fake.pages_file(&project, path);
        content.map(|content| String::from_utf8(content.to_vec()).unwrap())
    };
    assert_eq!(file("/index.html"), None);
    let promote = format!(
        "{}/deployments/{}/promote",
        cli(&person),
        shown.text("deploymentId")
    );
    let promoted = go_live(
        &suite,
        &person,
        by(&person, Call::post(promote, &json!({}))),
    )
    .await;
    assert_eq!(file("/index.html").as_deref(), Some("<h1>first</h1>"));

    let mut changed = FILES;
    changed[0].1 = "<h1>second</h1>";
    let files = changed.map(|(path, content)| {
        let digest = hex(&Sha256::digest(content));
        json!({ "path": path, "size": content.len(), "digest": digest })
    });
    let planned = format!("{}/deploy/plan", cli(&person));
    let plan = by(&person, Call::post(planned, &json!({ "files": files })));
    let plan = suite.send("gateway", plan).await.expect(201);
    assert_eq!(plan.json["missing"], json!(["index.html"]));
    let path = format!("{}/deploy?plan={}", cli(&person), plan.text("planId"));
    let part = archive_of(&changed[..1]);
    let upload = Call::upload(path, "application/octet-stream", part);
    go_live(&suite, &person, by(&person, upload)).await;
    assert_eq!(file("/index.html").as_deref(), Some("<h1>second</h1>"));
    assert_eq!(file("/css/site.css").as_deref(), Some("h1 { color: teal }"));

    let back = format!(
        "{}/deployments/{}/rollback",
        cli(&person),
        promoted.text("deploymentId")
    );
    go_live(&suite, &person, by(&person, Call::post(back, &json!({})))).await;
    assert_eq!(file("/index.html").as_deref(), Some("<h1>first</h1>"));
    suite.shutdown().await;
}
