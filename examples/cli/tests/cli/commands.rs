//! Secrets, features, domains, jobs, logs, stacks, and the command line itself.

use std::fs;

use serde_json::{Value, json};

use crate::fake::{AfterBody, FakeReply, FakeServer};
use crate::program::{PLATFORM, Program, platforms, route, routes};

fn set_secrets() -> FakeServer {
    FakeServer::with_replies([FakeReply::json(
        200,
        &json!({ "platformId": PLATFORM, "results": { "API_KEY": "ok" } }),
    )])
}

fn sent_secrets(server: &FakeServer) -> Value {
    serde_json::from_slice::<Value>(&server.requests()[0].body).unwrap()["secrets"].clone()
}

#[test]
fn a_secret_is_read_from_standard_input_and_never_printed() {
    let server = set_secrets();
    let run = Program::new()
        .run_with_input(&server, &["secrets", "set", "API_KEY"], "hunter2\n")
        .expect(0);
    assert_eq!(sent_secrets(&server), json!({ "API_KEY": "hunter2" }));
    assert!(!(run.stdout + &run.stderr).contains("hunter2"));
}

#[test]
fn secrets_are_read_from_files() {
    let program = Program::new();
    program.write("key.pem", "line 1\nline 2\n");
    program.write("vars", "A=1\nB='two words'\n");
    let server = set_secrets();
    program
        .run_at(
            &server,
            &["secrets", "set", "API_KEY", "--from-file", "key.pem"],
        )
        .expect(0);
    assert_eq!(
        sent_secrets(&server),
        json!({ "API_KEY": "line 1\nline 2" })
    );
    let server = set_secrets();
    program
        .run_at(&server, &["secrets", "set", "--env-file", "vars"])
        .expect(0);
    assert_eq!(sent_secrets(&server), json!({ "A": "1", "B": "two words" }));
}

#[test]
fn an_invalid_name_of_a_secret_is_refused_without_a_request() {
    let server = set_secrets();
    Program::new()
        .run_with_input(&server, &["secrets", "set", "api-key"], "x")
        .expect(2);
    assert!(server.requests().is_empty());
}

#[test]
fn secrets_are_listed_and_deleted() {
    let server = FakeServer::start(|request| match request.method.as_str() {
        "GET" => FakeReply::json(
            200,
            &json!({ "data": [{ "name": "API_KEY", "status": "set", "lastSetAt": "2026-01-15T09:30:00.000Z" }] }),
        ),
        _ => FakeReply::json(200, &json!({ "success": true })),
    });
    let program = Program::new();
    let run = program.run_at(&server, &["secrets", "list"]).expect(0);
    assert!(
        run.stdout.contains("API_KEY  set     2026-01-15 09:30"),
        "{}",
        run.stdout
    );
    program
        .run_at(&server, &["secrets", "delete", "API_KEY", "--yes"])
        .expect(0);
    assert_eq!(
        routes(&server)[1],
        "DELETE /api/v1/cli/platforms/P/secrets/API_KEY"
    );
}

#[test]
fn features_are_listed_and_activated() {
    let server = FakeServer::start(|request| match request.method.as_str() {
        "GET" => FakeReply::json(
            200,
            &json!({ "data": [
            { "featureId": "search", "version": "1.0.0", "status": "active", "config": {}, "activatedAt": "2026-01-15T09:30:00.000Z" },
        ] }),
        ),
        _ => FakeReply::json(
            202,
            &json!({ "status": "activated", "featureId": "search", "version": "1.0.0" }),
        ),
    });
    let program = Program::new();
    let run = program.run_at(&server, &["features"]).expect(0);
    assert!(run.stdout.contains("search"), "{}", run.stdout);
    program
        .run_at(&server, &["features", "activate", "search", "1.0.0"])
        .expect(0);
    let body: Value = serde_json::from_slice(&server.requests()[1].body).unwrap();
    assert_eq!(body, json!({ "featureId": "search", "version": "1.0.0" }));
}

fn domains_server() -> FakeServer {
    let missing =
        json!([{ "type": "CNAME", "name": "shop.example.com", "value": "www.example.org" }]);
    FakeServer::start(move |request| match route(request).as_str() {
        "GET /api/v1/platforms/P/stacks" => {
            FakeReply::json(200, &json!({ "data": [], "cursor": null }))
        }
        "GET /api/v1/platforms/P/domains" => FakeReply::json(
            200,
            &json!({ "cursor": null, "data": [{
            "id": "c-1", "hostname": "shop.example.com", "targetDns": "www.example.org", "dnsRecordId": "r-1",
            "status": "verifying", "sslStatus": "pending_validation", "missingRecords": missing, "verifiedAt": null,
        }] }),
        ),
        _ => FakeReply::error(404, "NOT_FOUND"),
    })
}

#[test]
fn checking_a_domain_prints_the_missing_records() {
    let server = domains_server();
    let run = Program::new()
        .run_at(&server, &["domains", "check", "shop.example.com"])
        .expect(1);
    assert!(
        run.stdout
            .contains("CNAME  shop.example.com  www.example.org"),
        "{}",
        run.stdout
    );
    assert!(run.stderr.contains("DNS provider"), "{}", run.stderr);
}

#[test]
fn an_unknown_domain_is_not_found() {
    Program::new()
        .run_at(
            &domains_server(),
            &["domains", "check", "other.example.com"],
        )
        .expect(3);
}

fn job(status: &str) -> Value {
    let error = (status == "FAILED")
        .then(|| json!({ "code": "X", "message": "The provider is down.", "details": {} }));
    json!({
        "jobId": "j-1", "kind": "platform", "status": status, "platformId": PLATFORM, "environment": "prod",
        "steps": [], "progress": { "completedSteps": 1, "totalSteps": 2, "percent": 50, "message": "x" }, "error": error,
        "waitingFor": null, "holdReason": null, "output": null, "createdAt": "2026-01-15T09:30:00.000Z", "finishedAt": null,
    })
}

fn job_server(status: &'static str) -> FakeServer {
    FakeServer::start(move |request| match route(request).as_str() {
        "GET /api/v1/provisioning/jobs/j-1/events" => {
            let event = json!({
                "seq": 1, "type": "job.step", "step": "d1", "reason": null, "toStatus": "RUNNING", "at": "x",
                "progress": { "completedSteps": 1, "totalSteps": 2, "percent": 50, "message": "x" },
            });
            FakeReply::events(&format!("id: 1\ndata: {event}\n\n"), AfterBody::End)
        }
        "GET /api/v1/provisioning/jobs/j-1" => FakeReply::json(200, &job(status)),
        _ => FakeReply::error(404, "NOT_FOUND"),
    })
}

#[test]
fn watching_a_job_prints_its_steps_and_its_outcome() {
    let run = Program::new()
        .run_at(&job_server("COMPLETED"), &["jobs", "watch", "j-1"])
        .expect(0);
    assert!(run.stderr.contains("1/2 job.step d1"), "{}", run.stderr);
    assert_eq!(run.stdout, "j-1 platform COMPLETED\n");
    let run = Program::new()
        .run_at(&job_server("FAILED"), &["jobs", "watch", "j-1"])
        .expect(1);
    assert!(
        run.stderr.contains("The provider is down."),
        "{}",
        run.stderr
    );
}

#[test]
fn an_unknown_job_is_not_found() {
    Program::new()
        .run_at(&job_server("COMPLETED"), &["jobs", "watch", "j-2"])
        .expect(3);
}

#[test]
fn only_operators_may_retry_jobs() {
    let server = FakeServer::with_replies([FakeReply::error(403, "FORBIDDEN")]);
    let run = Program::new()
        .run_at(&server, &["jobs", "retry", "j-1"])
        .expect(4);
    assert!(run.stderr.contains("operator"), "{}", run.stderr);
}

#[test]
fn logs_are_one_json_document_per_line() {
    let line = |id: u32| {
        format!(
            "id: {id}\ndata: {}\n\n",
            json!({ "id": id.to_string(), "at": "t", "resource": "api", "kind": "console", "text": "hi" })
        )
    };
    let server =
        FakeServer::with_replies([FakeReply::events(&(line(1) + &line(2)), AfterBody::End)]);
    let run = Program::new()
        .run_at(&server, &["logs", "--output", "json", "--tail", "2"])
        .expect(0);
    assert_eq!(run.stdout.lines().count(), 2);
    assert!(
        server.requests()[0]
            .target
            .ends_with("/logs?follow=false&tail=2")
    );
}

#[test]
fn a_dry_run_prints_the_plan_of_a_stack() {
    let server = FakeServer::start(|request| match route(request).as_str() {
        "GET /api/v1/stacks/web" => FakeReply::json(
            200,
            &json!({ "latestVersion": null, "template": {
            "id": "t", "name": "web", "display_name": "Web", "description": "x", "latest_version": "1.2.0",
        } }),
        ),
        _ => FakeReply::json(
            200,
            &json!({ "dryRun": true, "plan": {
            "kind": "stack", "steps": [{ "name": "db" }], "totalResources": 1,
            "resources": [{ "action": "create", "resourceType": "d1", "cfName": "engines-db" }],
        } }),
        ),
    });
    let run = Program::new()
        .run_at(&server, &["stacks", "activate", "web", "--dry-run"])
        .expect(0);
    assert!(
        run.stdout.contains("create  d1    engines-db"),
        "{}",
        run.stdout
    );
    assert!(
        server.requests()[1]
            .target
            .ends_with("/stack/activate?dryRun=true")
    );
}

#[test]
fn linking_writes_core_toml() {
    let (program, server) = (
        Program::new(),
        FakeServer::with_replies([platforms(&["engines", "other"])]),
    );
    program.run_at(&server, &["link", "engines"]).expect(0);
    assert_eq!(
        fs::read_to_string(program.path("core.toml")).unwrap(),
        format!("platform = \"{PLATFORM}\"\n")
    );
    program.run_at(&server, &["link", "missing"]).expect(3);
}

#[test]
fn the_only_platform_needs_no_name() {
    let server = FakeServer::start(|request| match route(request).as_str() {
        "GET /api/v1/platforms" => platforms(&["engines"]),
        _ => FakeReply::json(200, &json!({ "data": [] })),
    });
    let program = Program::new();
    let mut command = program.command(&["secrets", "list", "--api-url", &server.url]);
    let output = command.env("CORE_TOKEN", "core_key").output().unwrap();
    assert!(output.status.success());
    assert_eq!(routes(&server)[1], "GET /api/v1/cli/platforms/P/secrets");
}

#[test]
fn several_platforms_need_a_name() {
    let server = FakeServer::with_replies([platforms(&["engines", "other"])]);
    let program = Program::new();
    let mut command = program.command(&["secrets", "list", "--api-url", &server.url]);
    let output = command.env("CORE_TOKEN", "core_key").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("core-cli link")
    );
}

#[test]
fn a_wrong_option_is_a_usage_error() {
    Program::new().run(&["deploy", "--brunch", "x"]).expect(2);
    Program::new()
        .run(&["deployments", "--status", "late"])
        .expect(2);
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(
            Program::new()
                .run(&["completions", shell])
                .expect(0)
                .stdout
                .contains("rollback"),
            "{shell}"
        );
    }
}

#[test]
fn a_server_that_is_down_is_reported_with_its_address() {
    let run = Program::new();
    let mut command = run.command(&["platforms", "--api-url", "http://127.0.0.1:1"]);
    let output = command.env("CORE_TOKEN", "core_key").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("http://127.0.0.1:1")
    );
}
