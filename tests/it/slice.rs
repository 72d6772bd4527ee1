//! The main job, whole, through the gateway and IAM as tower services, on every store.

use core_suite::Suite;
use http::Method;
use serde_json::{Value, json};

use crate::people::{SERVICE_KEY, Signed, builder, signed_up};
use crate::stores::{self, Fresh};
use crate::support::Call;

struct Slice {
    suite: Suite,
    person: Signed,
}

impl Slice {
    async fn get(&self, path: &str, status: u16) -> Value {
        let call = Call::get(path).bearer(&self.person.token);
        call.to(&self.suite.gateway()).await.expect(status).json()
    }

    async fn post(&self, token: &str, path: &str, body: &Value, status: u16) -> Value {
        let call = Call::post(path, body).bearer(token);
        call.to(&self.suite.gateway()).await.expect(status).json()
    }
}

pub(crate) fn site_archive() -> Vec<u8> {
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
    let suite = builder(store.builder.clone()).build().await.unwrap();
    let person = signed_up(&suite, "engines", "Analytical Engines").await;
    let slice = Slice { suite, person };

    let jobs = slice
        .get(
            &format!(
                "/api/v1/provisioning/jobs?platformId={}",
                slice.person.platform
            ),
            200,
        )
        .await;
    let job = jobs["data"][0]["jobId"].as_str().unwrap();
    let done = slice.person.job_done(&slice.suite, job).await;
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
        format!("/api/v1/cli/platforms/{}/deploy", slice.person.platform),
    )
    .bearer(&slice.person.token)
    .raw("application/gzip", site_archive())
    .to(&slice.suite.gateway())
    .await
    .expect(202)
    .json();
    let deployment = deploy["deploymentId"].as_str().unwrap();
    let project = deploy["projectName"].as_str().unwrap();
    let path = format!(
        "/api/v1/cli/platforms/{}/deployments/{deployment}?wait=5",
        slice.person.platform
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

    let platform = format!("/api/v1/platforms/{}", slice.person.platform);
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
            &slice.person.token,
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

    let body = json!({ "platformId": slice.person.platform });
    let job = slice
        .post(
            &slice.person.token,
            "/api/v1/provisioning/platform/deprovision",
            &body,
            202,
        )
        .await;
    slice
        .person
        .job_done(&slice.suite, job["jobId"].as_str().unwrap())
        .await;
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
        let suite = builder(Suite::builder().in_memory()).build().await;
        suite.unwrap()
    };
    let (first, second) = (build().await, build().await);
    let ada = signed_up(&first, "engines", "Engines").await;
    // The same address and slug are free in the other suite, and the session is nobody's there.
    let other = signed_up(&second, "engines", "Engines").await;
    let question = Call::get(format!("/api/v1/platforms/{}", ada.platform));
    for (token, suite, status) in [
        (&ada.token, &second, 401),
        (&other.token, &second, 404),
        (&ada.token, &first, 200),
    ] {
        let asked = question.clone().bearer(token);
        asked.to(&suite.gateway()).await.expect(status);
    }
}
