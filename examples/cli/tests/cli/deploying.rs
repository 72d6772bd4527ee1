//! Deployments and releases.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Mutex;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::fake::{AfterBody, FakeReply, FakeServer, ReceivedRequest};
use crate::program::{PLATFORM, Program, route, routes};

/// A program in a folder with a site of three files.
fn program_with_site() -> Program {
    let program = Program::new();
    program.write("dist/index.html", "<h1>Hello</h1>");
    program.write("dist/css/site.css", "body {}");
    program.write("dist/about.html", "<h1>About</h1>");
    program.write("dist/.env", "SECRET=1");
    program
}

fn plan(missing: &[&str]) -> FakeReply {
    FakeReply::json(
        201,
        &json!({
            "planId": "plan-1", "expiresAt": 1_768_469_400, "missing": missing, "fileCount": 3, "totalBytes": 35,
            "missingBytes": 7, "maxUploadBytes": 1_000_000,
        }),
    )
}

fn deploy_reply() -> FakeReply {
    FakeReply::json(
        202,
        &json!({ "deploymentId": "d-1", "status": "queued", "projectName": "site" }),
    )
}

fn deployment(id: &str, status: &str) -> Value {
    json!({
        "deploymentId": id, "status": status, "branch": "production", "projectName": "site",
        "url": "https://site.example.org/", "permalink": format!("https://{id}.example.org/"), "message": null,
        "errorMessage": if status == "failure" { json!("The provider refused a file.") } else { Value::Null },
        "cfDeploymentId": null, "fileCount": 3, "totalBytes": 35, "userId": "u", "sourceDeploymentId": null,
        "isLive": false, "isPinned": false, "startedAt": null, "completedAt": null, "createdAt": 1_768_469_400,
    })
}

/// An event of a deployment.
fn event(seq: u32, status: &str, message: &str) -> String {
    let state =
        json!({ "deploymentId": "d-1", "status": status, "url": null, "errorMessage": null });
    let event = json!({ "seq": seq, "type": "x", "step": message, "reason": null });
    format!(
        "id: {seq}\ndata: {}\n\n",
        json!({ "deployment": state, "event": event })
    )
}

/// The events of a deployment that ends with a status.
fn events(status: &str) -> FakeReply {
    let text = event(1, "uploading", "2 of 3 files are uploaded") + &event(2, status, "done");
    FakeReply::events(&text, AfterBody::End)
}

/// A server with a plan and a deployment that ends with a status. `deploy` responds to the upload.
fn server(
    missing: &'static [&'static str],
    status: &'static str,
    deploy: impl Fn() -> FakeReply + Send + Sync + 'static,
) -> FakeServer {
    FakeServer::start(move |request| match route(request).as_str() {
        "POST /api/v1/cli/platforms/P/deploy/plan" => plan(missing),
        "POST /api/v1/cli/platforms/P/deploy" => deploy(),
        "GET /api/v1/cli/platforms/P/deployments/d-1/events" => events(status),
        "GET /api/v1/cli/platforms/P/deployments" => {
            let list = json!({ "data": [deployment("d-1", status)], "cursor": null });
            FakeReply::json(200, &list)
        }
        "GET /api/v1/cli/platforms/P/deployments/d-1" => {
            FakeReply::json(200, &deployment("d-1", status))
        }
        _ => FakeReply::error(404, "NOT_FOUND"),
    })
}

/// Returns the files of an uploaded archive.
fn unpack(request: &ReceivedRequest) -> BTreeMap<String, String> {
    assert_eq!(request.header("content-type"), "application/gzip");
    let mut archive = tar::Archive::new(GzDecoder::new(&*request.body));
    let mut files = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        files.insert(path, content);
    }
    files
}

#[test]
fn only_the_missing_files_are_sent() {
    let (program, server) = (
        program_with_site(),
        server(&["css/site.css"], "active", deploy_reply),
    );
    let run = program
        .run_at(&server, &["deploy", "dist", "--message", "a & b"])
        .expect(0);
    assert!(
        run.stdout.starts_with("https://site.example.org/\n"),
        "{}",
        run.stdout
    );
    assert!(
        run.stderr.contains("2 of 3 files are uploaded"),
        "{}",
        run.stderr
    );
    let received = server.requests();
    let list: Value = serde_json::from_slice(&received[0].body).unwrap();
    let paths: Vec<_> = list["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["about.html", "css/site.css", "index.html"]);
    assert_eq!(
        list["files"][1]["digest"],
        "62368a1a29259b30bac235c0e75dc700c9b3bacf1513ad5708e4fe4a6c0d6560"
    );
    assert_eq!(
        received[1].target,
        format!("/api/v1/cli/platforms/{PLATFORM}/deploy?plan=plan-1&message=a%20%26%20b")
    );
    assert_eq!(received[1].header("x-core-deploy-branch"), "production");
    assert_eq!(
        unpack(&received[1]),
        BTreeMap::from([("css/site.css".to_owned(), "body {}".to_owned())])
    );
}

#[test]
fn an_unchanged_site_sends_an_empty_archive() {
    let (program, server) = (program_with_site(), server(&[], "active", deploy_reply));
    program.run_at(&server, &["deploy", "dist"]).expect(0);
    assert!(unpack(&server.requests()[1]).is_empty());
}

#[test]
fn the_production_branch_and_the_folder_come_from_core_toml() {
    let (program, server) = (program_with_site(), server(&[], "active", deploy_reply));
    program.write(
        "core.toml",
        "site = \"dist\"\nproduction_branch = \"main\"\n",
    );
    program
        .run_at(&server, &["deploy", "--branch", "main"])
        .expect(0);
    program
        .run_at(&server, &["deploy", "--branch", "redesign"])
        .expect(0);
    let received = server.requests();
    let uploads = received
        .iter()
        .filter(|request| route(request).ends_with("/deploy"));
    let branches: Vec<_> = uploads
        .map(|request| request.header("x-core-deploy-branch"))
        .collect();
    assert_eq!(branches, ["production", "redesign"]);
}

#[test]
fn the_production_branch_is_listed_and_opened_as_production() {
    let (program, server) = (Program::new(), releasing_server());
    program.write("core.toml", "production_branch = \"main\"\n");
    program
        .run_at(&server, &["deployments", "--branch", "main"])
        .expect(0);
    program
        .run_at(&server, &["open", "--branch", "main"])
        .expect(0);
    for request in server.requests() {
        assert!(
            request.target.contains("branch=production"),
            "{}",
            request.target
        );
    }
}

#[test]
fn without_a_plan_nothing_is_sent() {
    for (status, code, exit) in [
        (404, "NOT_FOUND", 3),
        (405, "METHOD_NOT_ALLOWED", 1),
        (413, "PAYLOAD_TOO_LARGE", 1),
        (501, "NOT_IMPLEMENTED", 1),
    ] {
        let program = program_with_site();
        let server = FakeServer::with_replies([FakeReply::error(status, code)]);
        program.run_at(&server, &["deploy", "dist"]).expect(exit);
        assert_eq!(
            routes(&server)[0],
            "POST /api/v1/cli/platforms/P/deploy/plan"
        );
        assert!(
            !routes(&server)
                .iter()
                .any(|route| route.ends_with("/deploy"))
        );
    }
}

#[test]
fn contents_that_disappeared_are_planned_again() {
    let attempts = Mutex::new(0);
    let deploy = move || {
        let mut attempts = attempts.lock().unwrap();
        *attempts += 1;
        if *attempts > 1 {
            return deploy_reply();
        }
        let error = json!({ "code": "CONFLICT", "message": "Gone.", "requestId": "r", "details": { "missing": ["about.html"] } });
        FakeReply::json(409, &json!({ "error": error }))
    };
    let (program, server) = (program_with_site(), server(&[], "active", deploy));
    program
        .run_at(&server, &["deploy", "dist", "--no-wait"])
        .expect(0);
    let plans = routes(&server)
        .into_iter()
        .filter(|route| route.ends_with("/plan"));
    assert_eq!(plans.count(), 2);
}

#[test]
fn a_deployment_in_progress_is_a_conflict_with_a_next_step() {
    let deploy = || FakeReply::error(409, "CONFLICT");
    let (program, server) = (program_with_site(), server(&[], "active", deploy));
    let run = program.run_at(&server, &["deploy", "dist"]).expect(5);
    assert!(run.stderr.contains("in progress"), "{}", run.stderr);
}

#[test]
fn a_rate_limit_is_waited_for() {
    let attempts = Mutex::new(0);
    let deploy = move || {
        let mut attempts = attempts.lock().unwrap();
        *attempts += 1;
        match *attempts {
            1 => FakeReply::error(429, "RATE_LIMITED").header("retry-after", "0"),
            _ => deploy_reply(),
        }
    };
    let (program, server) = (
        program_with_site(),
        server(&["about.html"], "active", deploy),
    );
    program
        .run_at(&server, &["deploy", "dist", "--no-wait"])
        .expect(0);
    let received = server.requests();
    assert_eq!(received[1].body, received[2].body);
    assert_eq!(
        received[1].header("idempotency-key"),
        received[2].header("idempotency-key")
    );
}

#[test]
fn a_failed_deployment_exits_with_its_reason() {
    let (program, server) = (program_with_site(), server(&[], "failure", deploy_reply));
    let run = program
        .run_at(&server, &["deploy", "dist", "--output", "json"])
        .expect(1);
    assert_eq!(run.json()["status"], "failure");
    assert!(
        run.stderr.contains("The provider refused a file."),
        "{}",
        run.stderr
    );
}

#[test]
fn a_lost_stream_of_events_continues_until_the_deployment_has_ended() {
    let streams = Mutex::new(0);
    let server = FakeServer::start(move |request| match route(request).as_str() {
        "POST /api/v1/cli/platforms/P/deploy/plan" => plan(&[]),
        "POST /api/v1/cli/platforms/P/deploy" => deploy_reply(),
        "GET /api/v1/cli/platforms/P/deployments/d-1/events" => {
            let mut streams = streams.lock().unwrap();
            *streams += 1;
            match *streams {
                1 => FakeReply::events(&event(1, "uploading", "half"), AfterBody::Break),
                _ => FakeReply::events(&event(2, "active", "done"), AfterBody::Hang),
            }
        }
        _ => FakeReply::json(200, &deployment("d-1", "active")),
    });
    program_with_site()
        .run_at(&server, &["deploy", "dist"])
        .expect(0);
    let received = server.requests();
    let streams = received
        .iter()
        .filter(|request| route(request).ends_with("/events"));
    let ids: Vec<_> = streams
        .map(|request| request.header("last-event-id"))
        .collect();
    assert_eq!(ids, ["", "1"]);
}

#[test]
fn a_folder_without_front_page_is_refused_without_a_request() {
    let (program, server) = (
        program_with_site(),
        FakeServer::with_replies([deploy_reply()]),
    );
    let run = program.run_at(&server, &["deploy", "."]).expect(2);
    assert!(run.stderr.contains("index.html"), "{}", run.stderr);
    assert!(server.requests().is_empty());
}

#[test]
fn an_unknown_key_in_core_toml_is_an_error_with_its_line() {
    let program = program_with_site();
    program.write("core.toml", "site = \"dist\"\nbrunch = \"main\"\n");
    let run = program.run(&["deploy"]).expect(2);
    assert!(
        run.stderr.contains("line 2") && run.stderr.contains("brunch"),
        "{}",
        run.stderr
    );
}

/// A list of deployments to production, newest first: a rollback to `d-2` is live.
fn production() -> FakeReply {
    let mut data: Vec<_> = ["d-4", "d-3", "d-2", "d-1"]
        .map(|id| deployment(id, "active"))
        .into();
    data[0]["isLive"] = json!(true);
    data[0]["isPinned"] = json!(true);
    data[0]["sourceDeploymentId"] = json!("d-2");
    FakeReply::json(200, &json!({ "data": data, "cursor": null }))
}

fn releasing_server() -> FakeServer {
    FakeServer::start(|request| match route(request).as_str() {
        "GET /api/v1/cli/platforms/P/deployments" => production(),
        route if route.ends_with("/rollback") => deploy_reply(),
        route if route.ends_with("/pin") => FakeReply::json(200, &deployment("d-4", "active")),
        _ => FakeReply::error(404, "NOT_FOUND"),
    })
}

#[test]
fn a_rollback_without_id_takes_the_deployment_before_the_live_content() {
    let server = releasing_server();
    Program::new()
        .run_at(&server, &["rollback", "--yes", "--no-wait"])
        .expect(0);
    assert_eq!(
        routes(&server).last().unwrap(),
        "POST /api/v1/cli/platforms/P/deployments/d-1/rollback"
    );
}

#[test]
fn a_rollback_needs_a_confirmation() {
    let server = releasing_server();
    let run = Program::new()
        .run_at(&server, &["rollback", "d-1"])
        .expect(2);
    assert!(run.stderr.contains("--yes"), "{}", run.stderr);
    assert!(server.requests().is_empty());
}

#[test]
fn the_live_deployment_is_pinned_and_the_pinned_one_unpinned() {
    let server = releasing_server();
    Program::new().run_at(&server, &["pin"]).expect(0);
    Program::new().run_at(&server, &["unpin"]).expect(0);
    let routes = routes(&server);
    assert_eq!(
        routes[1],
        "POST /api/v1/cli/platforms/P/deployments/d-4/pin"
    );
    assert_eq!(
        routes[3],
        "DELETE /api/v1/cli/platforms/P/deployments/d-4/pin"
    );
}

#[test]
fn a_pinned_production_is_explained() {
    let error = json!({ "code": "CONFLICT", "message": "Pinned.", "requestId": "r", "details": { "pinnedDeploymentId": "d-4" } });
    let server = FakeServer::with_replies([FakeReply::json(409, &json!({ "error": error }))]);
    let run = Program::new()
        .run_at(&server, &["rollback", "d-1", "--yes"])
        .expect(5);
    assert!(run.stderr.contains("core-cli unpin"), "{}", run.stderr);
}

#[test]
fn deployments_are_listed_without_colours_when_piped() {
    let server = releasing_server();
    let run = Program::new().run_at(&server, &["deployments"]).expect(0);
    assert!(
        run.stdout.contains("active (live) (pinned)"),
        "{}",
        run.stdout
    );
    assert!(!run.stdout.contains('\u{1b}'));
}

#[test]
fn the_address_of_the_live_site_is_printed() {
    let server = releasing_server();
    let run = Program::new().run_at(&server, &["open"]).expect(0);
    assert_eq!(run.stdout, "https://site.example.org/\n");
}
