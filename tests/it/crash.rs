//! `kill -9` in the middle of a provisioning job. Acknowledged changes remain, the job completes, and no resource
//! exists twice.

use std::collections::BTreeSet;
use std::path::Path;

use crate::world::{Call, Installation, PlatformMember, SERVICE_KEY, Server, sign_up};

/// The latency before and after a step's effect, long enough to kill the server in the middle of a step.
const SLOW: &[&str] = &["--local-latency-ms", "600"];

/// Polls until the job has finished this many steps and works on the next one. Calls the service directly, because the
/// gateway would limit the rate of polls.
async fn reach_step(server: &Server, job: &str, finished: u64) {
    let question = Call::get(format!("/api/v1/provision/jobs/{job}")).bearer(SERVICE_KEY);
    loop {
        let state = server.send("provisioning", question.clone()).await;
        let state = state.expect(200).json;
        let done = state["progress"]["completedSteps"].as_u64().unwrap();
        assert!(done <= finished, "ran past step {finished}: {state}");
        if done == finished && state["status"] == "RUNNING" {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn check_everything_is_there_once(server: &Server, person: &PlatformMember, job: &str) {
    let job = person.job_done(server, job).await;
    let steps = job.json["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["status"] == "SUCCEEDED"));
    let resources = server.get(&person.token, &person.at("/resources")).await;
    let resources = resources.expect(200);
    for (field, different) in [("id", 6), ("resourceType", 6), ("cfName", 6), ("status", 1)] {
        let values = resources.each(field);
        let all: BTreeSet<_> = values.iter().collect();
        assert_eq!((values.len(), all.len()), (6, different), "{field}");
    }
    assert_eq!(resources.each("status")[0], "active");
}

/// Counts the objects of the provider, of all types, whose names start with the prefix.
pub(crate) fn provider_objects(folder: &Path, prefix: &str) -> usize {
    let entries = |folder: &Path| std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let kinds = entries(folder).map(|kind| kind.path());
    let objects = kinds
        .filter(|kind| kind.is_dir())
        .flat_map(|kind| entries(&kind));
    let names = objects.map(|object| object.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(prefix)).count()
}

async fn killed_during_step(step: u64) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), SLOW).await;
    let person = sign_up(&server, "engines", "Engines").await;
    let job = person.job(&server).await;
    reach_step(&server, &job, step).await;
    server.kill().await;

    let server = Server::start(data.path(), &[]).await;
    check_everything_is_there_once(&server, &person, &job).await;
    let objects = provider_objects(&data.path().join("infrastructure"), "engines-");
    assert_eq!(objects, 6);
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
