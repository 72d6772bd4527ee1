//! `kill -9` in the middle of a provisioning job: what was acknowledged is there, the job ends, nothing exists twice.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::process::Server;
use crate::support::Call;

const KEY: &str = "crash-service-key";

/// Long enough to be caught in the middle of, on each side of a step's effect.
const SLOW: &[&str] = &["--local-latency-ms", "600"];

struct Acknowledged {
    session: String,
    platform: String,
    job: String,
}

async fn get(server: &Server, token: &str, path: &str) -> Value {
    server
        .send("gateway", &Call::get(path).bearer(token))
        .await
        .expect(200)
        .json()
}

async fn start_a_job(server: &Server) -> Acknowledged {
    let body =
        json!({ "name": "Ada", "email": "ada@example.org", "password": "correct horse battery" });
    let signed_up = server
        .send("iam", &Call::post("/api/auth/sign-up/email", &body))
        .await
        .expect(200);
    let session = signed_up.json()["token"].as_str().unwrap().to_owned();
    let cookie = signed_up
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let setup = Call::post(
        "/api/core/org-setup",
        &json!({ "name": "Engines", "slug": "engines" }),
    )
    .header("cookie", cookie)
    .header("origin", server.url("iam"));
    let platform = server.send("iam", &setup).await.expect(201).json()["platformId"]
        .as_str()
        .unwrap()
        .to_owned();
    let jobs = get(
        server,
        &session,
        &format!("/api/v1/provisioning/jobs?platformId={platform}"),
    )
    .await;
    let job = jobs["data"][0]["jobId"].as_str().unwrap().to_owned();
    Acknowledged {
        session,
        platform,
        job,
    }
}

/// Asks until the job has finished this many steps and works on the next one. Asks the service itself: the gateway
/// would find so many questions too many.
async fn reach_step(server: &Server, what: &Acknowledged, finished: u64) {
    let question = Call::get(format!("/api/v1/provision/jobs/{}", what.job)).bearer(KEY);
    loop {
        let state = server
            .send("provisioning", &question)
            .await
            .expect(200)
            .json();
        let done = state["progress"]["completedSteps"].as_u64().unwrap();
        assert!(
            done <= finished,
            "the job ran past step {finished}: {state}"
        );
        if done == finished && state["status"] == "RUNNING" {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn check_everything_is_there_once(server: &Server, what: &Acknowledged) {
    let job = loop {
        let path = format!("/api/v1/provisioning/jobs/{}?wait=5", what.job);
        let state = get(server, &what.session, &path).await;
        match state["status"].as_str().unwrap() {
            "COMPLETED" => break state,
            "FAILED" => panic!("{state}"),
            _ => {}
        }
    };
    assert!(
        job["steps"]
            .as_array()
            .unwrap()
            .iter()
            .all(|s| s["status"] == "SUCCEEDED"),
        "{job}"
    );
    let resources = get(
        server,
        &what.session,
        &format!("/api/v1/platforms/{}/resources", what.platform),
    )
    .await;
    let rows = resources["data"].as_array().unwrap();
    let kinds: BTreeSet<_> = rows
        .iter()
        .map(|r| r["resourceType"].as_str().unwrap())
        .collect();
    let names: BTreeSet<_> = rows.iter().map(|r| r["cfName"].as_str().unwrap()).collect();
    assert_eq!(
        (rows.len(), kinds.len(), names.len()),
        (6, 6, 6),
        "{resources}"
    );
    assert!(rows.iter().all(|r| r["status"] == "active"), "{resources}");
}

/// Every object of the provider with one of these names, wherever it lies.
fn provider_objects(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for kind in std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.is_dir())
    {
        for object in std::fs::read_dir(&kind).unwrap() {
            found.push(object.unwrap().file_name().to_string_lossy().into_owned());
        }
    }
    found
        .into_iter()
        .filter(|name| name.starts_with("engines-"))
        .collect()
}

async fn killed_during_step(step: u64) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), KEY, SLOW).await;
    let what = start_a_job(&server).await;
    reach_step(&server, &what, step).await;
    server.kill().await;

    let server = Server::start(data.path(), KEY, &[]).await;
    check_everything_is_there_once(&server, &what).await;
    assert_eq!(
        provider_objects(&data.path().join("infrastructure")).len(),
        6
    );
    assert!(server.terminate().await.success());
}

#[tokio::test]
async fn killed_during_the_first_step_the_job_completes_after_restart() {
    killed_during_step(0).await;
}

#[tokio::test]
async fn killed_during_the_third_step_the_job_completes_after_restart() {
    killed_during_step(2).await;
}

#[tokio::test]
async fn killed_during_the_sixth_step_the_job_completes_after_restart() {
    killed_during_step(5).await;
}
