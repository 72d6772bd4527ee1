//! F8: a SQLite file whose process is killed during commits, that cannot grow, or that is already in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;
use serde_json::json;
use tokio::process::Command;
use tokio::task::JoinHandle;

use super::site::{ProvisioningJob, SHORT_LEASES, Site};
use crate::world::{Backend, Call, Installation, Rng, SERVICE_KEY, Server, run};

fn new_platform(slug: &str) -> Call {
    let body = json!({ "name": slug, "slug": slug });
    Call::post("/api/v1/platforms", &body).bearer(SERVICE_KEY)
}

/// Creates platforms one after the other until the server no longer responds. Returns the ids of the acknowledged ones.
async fn make_platforms(
    server: Arc<Server>,
    prefix: String,
    made: Arc<AtomicUsize>,
) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0.. {
        let call = new_platform(&format!("{prefix}-{number}"));
        let Some(answer) = server.try_send("registry", call).await else {
            break;
        };
        ids.push(answer.expect(201).id());
        made.fetch_add(1, Ordering::SeqCst);
    }
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_changes_remain_after_a_kill_during_commits() {
    let site = Site::on(Backend::Sqlite).await;
    let rng = Rng::new(3);
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        let server = Arc::new(site.start(&[]).await);
        let made = Arc::new(AtomicUsize::new(0));
        let writers = [0, 1, 2].map(|writer| {
            let prefix = format!("p{round}-{writer}");
            tokio::spawn(make_platforms(
                Arc::clone(&server),
                prefix,
                Arc::clone(&made),
            ))
        });
        let enough = 10 + rng.below(40);
        while made.load(Ordering::SeqCst) < enough {
            assert!(!writers.iter().any(JoinHandle::is_finished));
            tokio::task::yield_now().await;
        }
        server.signal("KILL").await;
        for writer in writers {
            acknowledged.extend(writer.await.unwrap());
        }
        // The file stays in use until the process has ended.
        Arc::into_inner(server).unwrap().kill().await;
    }
    let server = site.start(&[]).await;
    for id in &acknowledged {
        let call = Call::get(format!("/api/v1/platforms/{id}")).bearer(SERVICE_KEY);
        let _ = server.send("registry", call).await.expect(200);
    }
    assert!(server.terminate().await.success());
    site.assert_consistent().await;
}

/// Limits the size of the process's files from now on.
async fn limit_files(server: &Server, bytes: &str) {
    let mut prlimit = Command::new("prlimit");
    prlimit.args(["--pid", &server.pid()]);
    prlimit.arg(format!("--fsize={bytes}:unlimited"));
    assert!(prlimit.status().await.unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cannot_write_returns_503_until_there_is_space() {
    let site = Site::on(Backend::Sqlite).await;
    let mut arguments = vec!["--local-latency-ms", "100"];
    arguments.extend(SHORT_LEASES);
    // Without this the signal would end the process before a write can fail.
    let patient = ["env", "--ignore-signal=XFSZ"];
    let environment = site.environment("off");
    let server = Server::start_under(&patient, site.data.path(), &arguments, &environment).await;
    let mut queued = ProvisioningJob::many(&server, "before", 4).await;
    queued[3].wait_until_running(&server).await;

    limit_files(&server, "65536").await;
    let mut refused = 0;
    for number in 0..2_000 {
        let call = new_platform(&format!("full-{number}"));
        let answer = server.send("registry", call).await;
        if answer.status != StatusCode::CREATED {
            let _ = answer.expect_error(503, "SERVICE_UNAVAILABLE");
            refused += 1;
        }
        if refused == 10 {
            break;
        }
    }
    assert_eq!(refused, 10);
    let _ = queued[0].get(&server).await.expect(200);

    limit_files(&server, "unlimited").await;
    queued.extend(ProvisioningJob::many(&server, "after", 2).await);
    site.assert_complete(&server, &queued).await;
    assert!(server.terminate().await.success());
    site.assert_consistent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_is_refused_and_changes_nothing() {
    let site = Site::on(Backend::Sqlite).await;
    let server = site.start(&[]).await;
    let queued = [ProvisioningJob::on(&server, "engines").await];
    let url = format!("sqlite:{}", site.database);
    let second = ["--base-port", "0", "--database-url", &url];
    let second = run(site.data.path(), &second, "").await;
    assert!(!second.status.success());
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(said.contains("in use by another process"), "{said}");
    let jobs = site.assert_complete(&server, &queued).await;
    assert_eq!(jobs[0]["lostLeases"], 0);
    assert!(server.terminate().await.success());
    site.assert_consistent().await;
}
