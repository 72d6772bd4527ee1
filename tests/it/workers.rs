//! Workers over HTTP: a platform's workers answer requests and can use their bindings.

use std::path::{Path, PathBuf};

use core_http::kernel::testing::Answer;
use serde_json::json;

use crate::world::{Call, Installation, PlatformMember, SERVICE_KEY, Server, sign_up};

/// Returns the program that runs workers, where `tests/run` installs it. Without it the tests print that they are
/// skipped.
pub(crate) fn workerd() -> Option<PathBuf> {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests are configured by environment variables"
    )]
    let named = std::env::var("CORE_TEST_WORKERD").ok().map(PathBuf::from);
    // .../target/debug/deps/it-hash -> .../target
    let own = std::env::current_exe().unwrap();
    let installed = own
        .ancestors()
        .nth(3)
        .unwrap()
        .join("workerd/node_modules/.bin/workerd");
    let found = named.or_else(|| installed.exists().then_some(installed));
    if found.is_none() {
        eprintln!(
            "SKIPPED: workerd is not installed, so no worker runs in this test; tests/run installs it"
        );
    }
    found
}

pub(crate) async fn start(data: &Path, workerd: &Path) -> Server {
    Server::start(data, &["--workerd", workerd.to_str().unwrap()]).await
}

/// Returns the name of the platform's worker for its API or for its sessions, which is the label in its address.
pub(crate) async fn worker_of(server: &Server, person: &PlatformMember, purpose: &str) -> String {
    let resources = server.get(&person.token, &person.at("/resources")).await;
    let resources = resources.expect(200);
    let all = resources.json["data"].as_array().unwrap().iter();
    let names = all.map(|resource| resource["cfName"].as_str().unwrap().to_owned());
    let mut of_purpose = names.filter(|name| name.ends_with(purpose));
    of_purpose.next().unwrap()
}

pub(crate) async fn ask(server: &Server, call: Call, worker: &str) -> Answer {
    let host = format!("{worker}.localhost");
    server.send("sites", call.header("host", host)).await
}

#[tokio::test]
async fn a_platform_worker_can_use_its_bindings_before_and_after_kill_9() {
    let Some(workerd) = workerd() else { return };
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &workerd).await;
    let person = sign_up(&server, "engines", "Engines").await;
    let job = person.job(&server).await;
    person.job_done(&server, &job).await;
    let worker = worker_of(&server, &person, "-api").await;

    let health = ask(&server, Call::get("/health"), &worker)
        .await
        .expect(200);
    assert_eq!(health.json["status"], "healthy");
    let time = ask(&server, Call::get("/time"), &worker).await.expect(200);
    assert!(
        time.json["now"].as_i64() > Some(1_700_000_000),
        "{}",
        time.json
    );
    let _ = ask(&server, Call::get("/assets/none"), &worker)
        .await
        .expect(404);
    for visits in 1..=2 {
        let visit = Call::upload("/visits", "text/plain", "");
        let visit = ask(&server, visit, &worker).await.expect(200);
        assert_eq!(visit.json["visits"], visits);
    }
    server.kill().await;

    let server = start(data.path(), &workerd).await;
    let visit = Call::upload("/visits", "text/plain", "");
    let visit = ask(&server, visit, &worker).await.expect(200);
    assert_eq!(visit.json["visits"], 3);
    assert!(server.terminate().await.success());
}

#[tokio::test]
async fn an_auth_worker_can_call_iam_on_this_machine() {
    let Some(workerd) = workerd() else { return };
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &workerd).await;
    let person = sign_up(&server, "engines", "Engines").await;
    let job = person.job(&server).await;
    person.job_done(&server, &job).await;
    let upgrade = json!({ "platformId": person.platform });
    let upgrade = Call::post("/api/v1/provision/auth/upgrade", &upgrade).bearer(SERVICE_KEY);
    let upgraded = server.send("provisioning", upgrade).await.json;
    let job = upgraded["jobId"].as_str().unwrap();
    person.job_done(&server, job).await;
    let worker = worker_of(&server, &person, "-auth").await;

    let session = Call::get("/session").bearer(&person.token);
    let session = ask(&server, session, &worker).await.expect(200);
    assert_eq!(session.json["platformId"], person.platform);
    for call in [
        Call::get("/session"),
        Call::get("/session").bearer("guessed"),
    ] {
        let _ = ask(&server, call, &worker).await.expect(401);
    }
    assert!(server.terminate().await.success());
}
