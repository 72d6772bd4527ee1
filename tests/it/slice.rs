//! The main job, whole, through the gateway and IAM as tower services, on every store.

use core_suite::Suite;
use http::Method;
use serde_json::{Value, json};

use crate::stores::{self, Fresh};
use crate::support::Call;

const SERVICE_KEY: &str = "slice-service-key";
const IAM: &str = "http://iam.suite.test";

struct Slice {
    suite: Suite,
    session: String,
    platform: String,
}

impl Slice {
    async fn get(&self, path: &str, status: u16) -> Value {
        Call::get(path)
            .bearer(&self.session)
            .to(&self.suite.gateway())
            .await
            .expect(status)
            .json()
    }

    async fn post(&self, token: &str, path: &str, body: &Value, status: u16) -> Value {
        Call::post(path, body)
            .bearer(token)
            .to(&self.suite.gateway())
            .await
            .expect(status)
            .json()
    }

    /// Waits for the job at the server, never with a clock of its own.
    async fn job_done(&self, job: &str) -> Value {
        loop {
            let state = self
                .get(&format!("/api/v1/provisioning/jobs/{job}?wait=5"), 200)
                .await;
            match state["status"].as_str().unwrap() {
                "COMPLETED" => return state,
                "FAILED" => panic!("{state}"),
                _ => {}
            }
        }
    }
}

async fn signed_up(suite: Suite, slug: &str) -> Slice {
    let body = json!({ "name": "Ada", "email": format!("{slug}@example.org"), "password": "correct horse battery" });
    let answer = Call::post("/api/auth/sign-up/email", &body)
        .to(&suite.iam())
        .await
        .expect(200);
    let session = answer.json()["token"].as_str().unwrap().to_owned();
    let cookie = answer
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let organization = Call::post(
        "/api/core/org-setup",
        &json!({ "name": "Engines", "slug": slug }),
    )
    .header("cookie", cookie)
    .header("origin", IAM)
    .to(&suite.iam())
    .await
    .expect(201)
    .json();
    let platform = organization["platformId"].as_str().unwrap().to_owned();
    Slice {
        suite,
        session,
        platform,
    }
}

fn site_archive() -> Vec<u8> {
    let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(
        Vec::new(),
        flate2::Compression::fast(),
    ));
    for (name, content) in [
        ("index.html", "<h1>live</h1>"),
        ("css/site.css", "h1 { color: teal }"),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive
            .append_data(&mut header, name, content.as_bytes())
            .unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

async fn main_job(store: Fresh) {
    let suite = store
        .builder
        .clone()
        .service_key(SERVICE_KEY)
        .iam_url(IAM)
        .build()
        .await
        .unwrap();
    let slice = signed_up(suite, "engines").await;

    let jobs = slice
        .get(
            &format!("/api/v1/provisioning/jobs?platformId={}", slice.platform),
            200,
        )
        .await;
    let job = jobs["data"][0]["jobId"].as_str().unwrap();
    let done = slice.job_done(job).await;
    assert_eq!(done["progress"]["percent"], 100);

    let template = json!({ "name": "web", "displayName": "Web", "description": "A site." });
    slice
        .post(SERVICE_KEY, "/api/v1/stacks", &template, 201)
        .await;
    let version = json!({ "version": "1.0.0", "stackDefinition": {}, "coreSdkVersion": "1.0.0" });
    slice
        .post(SERVICE_KEY, "/api/v1/stacks/web/versions", &version, 201)
        .await;
    assert_eq!(
        slice.get("/api/v1/stacks/web", 200).await["template"]["latest_version"],
        "1.0.0"
    );

    let deploy = Call::new(
        Method::POST,
        format!("/api/v1/cli/platforms/{}/deploy", slice.platform),
    )
    .bearer(&slice.session)
    .raw("application/gzip", site_archive())
    .to(&slice.suite.gateway())
    .await
    .expect(202)
    .json();
    let deployment = deploy["deploymentId"].as_str().unwrap();
    let project = deploy["projectName"].as_str().unwrap();
    let path = format!(
        "/api/v1/cli/platforms/{}/deployments/{deployment}?wait=5",
        slice.platform
    );
    let live = loop {
        let state = slice.get(&path, 200).await;
        match state["status"].as_str().unwrap() {
            "active" => break state,
            "failure" | "canceled" => panic!("{state}"),
            _ => {}
        }
    };
    assert!(live["url"].as_str().unwrap().contains(project));
    let sites = slice.suite.sites().unwrap();
    let page = Call::get(format!("/{project}/"))
        .to(&sites)
        .await
        .expect(200);
    assert_eq!(page.body, "<h1>live</h1>");

    let platform = format!("/api/v1/platforms/{}", slice.platform);
    assert_eq!(
        slice.get(&format!("{platform}/resources"), 200).await["pagination"]["total"],
        6
    );
    assert!(
        slice.get(&format!("{platform}/audit"), 200).await["pagination"]["total"]
            .as_u64()
            .unwrap()
            >= 2
    );
    slice
        .post(
            &slice.session,
            &format!("{platform}/suspend"),
            &json!({ "reason": "late" }),
            200,
        )
        .await;
    let refused = slice.get(&platform, 451).await;
    assert_eq!(refused["error"]["code"], "PLATFORM_SUSPENDED");
    slice
        .post(SERVICE_KEY, &format!("{platform}/restore"), &json!({}), 200)
        .await;
    assert_eq!(slice.get(&platform, 200).await["status"], "active");
    let lifecycle = slice.get(&format!("{platform}/lifecycle"), 200).await;
    let moves: Vec<_> = lifecycle["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["toStatus"].as_str().unwrap())
        .collect();
    assert_eq!(moves[..2], ["active", "suspended"]);

    let body = json!({ "platformId": slice.platform });
    let job = slice
        .post(
            &slice.session,
            "/api/v1/provisioning/platform/deprovision",
            &body,
            202,
        )
        .await;
    slice.job_done(job["jobId"].as_str().unwrap()).await;
    assert_eq!(
        slice.get(&format!("{platform}/resources"), 200).await["pagination"]["total"],
        0
    );
    Call::get(format!("/{project}/"))
        .to(&sites)
        .await
        .expect(404);
    slice.suite.shutdown().await;
}

#[tokio::test]
async fn the_main_job_runs_on_memory() {
    main_job(stores::memory()).await;
}

#[tokio::test]
async fn the_main_job_runs_on_sqlite() {
    main_job(stores::sqlite()).await;
}

#[tokio::test]
async fn the_main_job_runs_on_postgres() {
    main_job(stores::postgres().await).await;
}

#[tokio::test]
async fn two_suites_in_one_process_do_not_see_each_other() {
    let build = || async {
        Suite::builder()
            .in_memory()
            .service_key(SERVICE_KEY)
            .iam_url(IAM)
            .build()
            .await
            .unwrap()
    };
    let first = signed_up(build().await, "engines").await;
    // The same address and slug are free in the other suite, and the session is nobody's there.
    let second = signed_up(build().await, "engines").await;
    let path = format!("/api/v1/platforms/{}", first.platform);
    Call::get(&path)
        .bearer(&first.session)
        .to(&second.suite.gateway())
        .await
        .expect(401);
    Call::get(&path)
        .bearer(&second.session)
        .to(&second.suite.gateway())
        .await
        .expect(404);
    Call::get(&path)
        .bearer(&first.session)
        .to(&first.suite.gateway())
        .await
        .expect(200);
}
