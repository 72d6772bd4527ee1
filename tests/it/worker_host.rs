//! The process that hosts workers for a server: its memory is limited, it may crash, and it ends with the server.

use std::path::PathBuf;

use crate::workers::{ask, start, worker_of, workerd};
use crate::world::{Call, Installation, PlatformMember, SERVICE_KEY, Server, sign_up};

/// Returns the child processes of a process, as their folders in `/proc`.
fn children_of(pid: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let children = all.map(|entry| entry.path()).filter(|process| {
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        parent.is_some_and(|parent| parent.trim() == pid)
    });
    children.collect()
}

fn pid_of(process: &std::path::Path) -> String {
    process.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Returns the process that hosts the workers of a server, if it is running.
fn host_of(server: &Server) -> Option<PathBuf> {
    let mut children = children_of(&server.pid()).into_iter();
    children.find(|process| {
        let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
        command.ends_with(b"\0workers\0")
    })
}

async fn ready(server: &Server) -> (PlatformMember, String) {
    let person = sign_up(server, "engines", "Engines").await;
    let job = person.job(server).await;
    person.job_done(server, &job).await;
    let worker = worker_of(server, &person, "-api").await;
    (person, worker)
}

/// Visits a worker for the first time. The worker counts its visits in its database.
async fn first_visit(server: &Server, worker: &str) {
    let visit = ask(server, Call::upload("/visits", "text/plain", ""), worker).await;
    assert_eq!(visit.expect(200).json["visits"], 1);
}

async fn visits(server: &Server, worker: &str) -> Option<i64> {
    let visit = Call::upload("/visits", "text/plain", "");
    let visit = ask(server, visit, worker).await;
    (visit.status == 200).then(|| visit.json["visits"].as_i64().unwrap())
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_worker_host_process_has_limited_memory_and_no_server_secrets() {
    let Some(workerd) = workerd() else { return };
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &workerd).await;
    let (_, worker) = ready(&server).await;
    first_visit(&server, &worker).await;
    let host = host_of(&server).unwrap();
    let limits = std::fs::read_to_string(host.join("limits")).unwrap();
    let memory = limits
        .lines()
        .find(|line| line.starts_with("Max data size"));
    let memory: Vec<_> = memory.unwrap().split_whitespace().collect();
    assert_eq!(memory[3..5], ["1073741824", "1073741824"]);
    let environment = std::fs::read(host.join("environ")).unwrap();
    let environment = String::from_utf8(environment).unwrap();
    assert!(!environment.contains(SERVICE_KEY), "{environment}");
    assert!(!environment.contains("AUTH_API_KEY"), "{environment}");
    // The guards of workers are children of this process, and not of the server.
    assert_eq!(children_of(&server.pid()), std::slice::from_ref(&host));
    assert!(!children_of(&pid_of(&host)).is_empty());

    assert!(server.terminate().await.success());
    assert!(!host.exists(), "the process must end before the server");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_restarts_a_killed_worker_host_process() {
    let Some(workerd) = workerd() else { return };
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &workerd).await;
    let (person, worker) = ready(&server).await;
    first_visit(&server, &worker).await;
    let host = host_of(&server).unwrap();
    let guards = children_of(&pid_of(&host));
    let mut kill = tokio::process::Command::new("kill");
    let killed = kill.arg("-9").arg(pid_of(&host)).status().await;
    assert!(killed.unwrap().success());
    let resources = server.get(&person.token, &person.at("/resources")).await;
    let _ = resources.expect(200);
    // A request that is sent while the process ends may fail. The next one starts it again.
    let again = loop {
        if let Some(visits) = visits(&server, &worker).await {
            break visits;
        }
    };
    assert_eq!(again, 2);
    let next = host_of(&server).unwrap();
    assert_ne!(next, host);
    while guards.iter().any(|guard| guard.exists()) {
        tokio::task::yield_now().await;
    }

    server.kill().await;
    while next.exists() {
        tokio::task::yield_now().await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_server_hosts_workers_itself_if_configured_to() {
    let Some(workerd) = workerd() else { return };
    let data = tempfile::tempdir().unwrap();
    let workerd = workerd.to_str().unwrap();
    let arguments = [
        "--workerd",
        workerd,
        "--set",
        "settings.workerd.process=false",
    ];
    let server = Server::start(data.path(), &arguments).await;
    let (_, worker) = ready(&server).await;
    first_visit(&server, &worker).await;
    assert_eq!(host_of(&server), None);
    assert!(server.terminate().await.success());
}

#[tokio::test]
async fn the_workers_command_cannot_be_started_by_hand() {
    let data = tempfile::tempdir().unwrap();
    let ended = crate::world::run(data.path(), &["workers"], "").await;
    assert!(!ended.status.success());
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("must be started by the server"), "{said}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn console_lines_of_a_hosted_worker_reach_the_log_of_its_platform() {
    let Some(workerd) = workerd() else { return };
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &workerd).await;
    let (person, worker) = ready(&server).await;
    log_at_start(data.path(), &worker);
    first_visit(&server, &worker).await;
    let path = format!(
        "/api/v1/cli/platforms/{}/logs?follow=false",
        person.platform
    );
    let lines = loop {
        let answer = server.get(&person.token, &path).await.expect(200);
        let lines = log_lines(&String::from_utf8_lossy(&answer.bytes));
        if lines.len() >= 2 {
            break lines;
        }
    };
    let of_kind = |kind: &str| lines.iter().find(|line| line["kind"] == kind).unwrap();
    let console = of_kind("console");
    assert_eq!(console["resource"], worker.as_str());
    assert_eq!(
        (&console["level"], &console["text"]),
        (&"warn".into(), &"started".into())
    );
    let request = of_kind("request");
    assert_eq!(
        (&request["path"], &request["status"]),
        (&"/visits".into(), &200.into())
    );
    assert_eq!(request.get("clientAddress"), None);
    assert!(server.terminate().await.success());
}

/// Adds a statement to the stored script of a worker that has not started yet.
fn log_at_start(data: &std::path::Path, worker: &str) {
    let versions = data
        .join("infrastructure/worker")
        .join(worker)
        .join("versions");
    let version = std::fs::read_dir(versions)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let modules = std::fs::read_dir(version.path().join("modules")).unwrap();
    let module = modules.flatten().next().unwrap().path();
    let script = std::fs::read_to_string(&module).unwrap();
    std::fs::write(module, format!("console.warn('started');\n{script}")).unwrap();
}

/// Returns the data of server-sent events.
fn log_lines(events: &str) -> Vec<serde_json::Value> {
    let data = events
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    data.map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
