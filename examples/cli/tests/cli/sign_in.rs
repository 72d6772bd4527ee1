//! Sign-in, refresh of tokens, sign-out.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::fake::{FakeReply, FakeServer};
use crate::program::{FAR, PLATFORM, Program, Run, lock_tokens, platforms, route, routes, whoami};

fn codes() -> FakeReply {
    FakeReply::json(
        200,
        &json!({
            "device_code": "secret-device-code", "user_code": "BCDF-GHJK", "verification_uri": "https://id.example.org/device",
            "verification_uri_complete": "https://id.example.org/device?user_code=BCDF-GHJK", "expires_in": 600, "interval": 0,
        }),
    )
}

fn tokens(number: u32) -> FakeReply {
    FakeReply::json(
        200,
        &json!({
            "access_token": format!("cat_{number}"), "token_type": "bearer", "expires_in": 900,
            "refresh_token": format!("crt_{number}"),
        }),
    )
}

fn oauth_error(code: &str) -> FakeReply {
    FakeReply::json(400, &json!({ "error": code, "error_description": "no" }))
}

/// A server that responds to polls with these outcomes, and then with tokens. It is the gateway and IAM.
fn device_server(outcomes: &'static [&'static str]) -> FakeServer {
    let polls = Mutex::new(0);
    FakeServer::start(move |request| match route(request).as_str() {
        "GET /.well-known/oauth-protected-resource" => {
            let url = format!("http://{}", request.header("host"));
            let document = json!({ "resource": url, "authorization_servers": [url] });
            FakeReply::json(200, &document)
        }
        "GET /.well-known/oauth-authorization-server" => {
            let url = format!("http://{}", request.header("host"));
            FakeReply::json(
                200,
                &json!({
                    "issuer": url, "token_endpoint": format!("{url}/oauth/token"),
                    "device_authorization_endpoint": format!("{url}/oauth/device/code"),
                }),
            )
        }
        "POST /oauth/device/code" => codes(),
        "POST /oauth/device/token" => {
            let mut polls = polls.lock().unwrap();
            *polls += 1;
            outcomes
                .get(*polls - 1)
                .map_or_else(|| tokens(1), |code| oauth_error(code))
        }
        "POST /api/v1/cli/whoami" => whoami(),
        _ => FakeReply::error(404, "NOT_FOUND"),
    })
}

fn login(program: &Program, server: &FakeServer) -> Run {
    program.run(&[
        "login",
        "--api-url",
        &server.url,
        "--iam-url",
        &server.url,
        "--no-browser",
    ])
}

#[test]
fn login_waits_for_the_approval_and_stores_the_tokens() {
    let (program, server) = (
        Program::new(),
        device_server(&["authorization_pending", "authorization_pending"]),
    );
    let run = login(&program, &server).expect(0);
    assert!(
        run.stderr.contains("https://id.example.org/device") && run.stderr.contains("BCDF-GHJK"),
        "{}",
        run.stderr
    );
    assert!(run.stdout.contains("ada@example.org"), "{}", run.stdout);
    assert!(!(run.stdout + &run.stderr).contains("secret-device-code"));
    assert_eq!(program.tokens().unwrap()["access_token"], "cat_1");
    // Later commands use the address of the profile.
    let run = program.run(&["whoami", "--output", "json"]).expect(0);
    assert_eq!(run.json()["platformId"], PLATFORM);
    assert_eq!(
        server.requests().last().unwrap().header("authorization"),
        "Bearer cat_1"
    );
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_stored_tokens() {
    use std::os::unix::fs::PermissionsExt;
    let (program, server) = (Program::new(), device_server(&[]));
    login(&program, &server).expect(0);
    let mode = |name: &str| {
        std::fs::metadata(program.config().join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(
        (mode("tokens/default.json"), mode("tokens")),
        (0o600, 0o700)
    );
}

#[test]
fn login_polls_more_slowly_when_the_server_asks_for_it() {
    let (program, server) = (Program::new(), device_server(&["slow_down"]));
    let begin = Instant::now();
    login(&program, &server).expect(0);
    assert!(begin.elapsed() >= Duration::from_secs(5));
}

#[test]
fn an_expired_or_denied_sign_in_is_explained() {
    for (code, words) in [("expired_token", "expired"), ("access_denied", "denied")] {
        let program = Program::new();
        let server = match code {
            "expired_token" => device_server(&["expired_token"]),
            _ => device_server(&["access_denied"]),
        };
        let run = login(&program, &server).expect(4);
        assert!(
            run.stderr.contains(words) && run.stderr.contains("core-cli login"),
            "{}",
            run.stderr
        );
        assert_eq!(program.tokens(), None);
    }
}

#[test]
fn login_finds_iam_at_the_gateway_and_uses_the_profile_from_then_on() {
    let (program, server) = (Program::new(), device_server(&[]));
    let login = || {
        let run = program.run(&["login", "--api-url", &server.url, "--no-browser"]);
        run.expect(0);
    };
    login();
    assert_eq!(program.tokens().unwrap()["iam_url"], server.url);
    login();
    let lookups = routes(&server)
        .into_iter()
        .filter(|route| route.ends_with("oauth-protected-resource"));
    assert_eq!(lookups.count(), 1);
}

#[test]
fn login_without_an_address_of_iam_says_which_option_is_missing() {
    let server = FakeServer::with_replies([FakeReply::error(404, "NOT_FOUND")]);
    let run = Program::new()
        .run(&["login", "--api-url", &server.url, "--no-browser"])
        .expect(2);
    assert!(run.stderr.contains("--iam-url"), "{}", run.stderr);
    assert_eq!(
        routes(&server),
        ["GET /.well-known/oauth-protected-resource"]
    );
}

#[test]
fn a_gateway_that_names_another_installation_is_refused() {
    let other = json!({
        "resource": "https://api.example.org", "authorization_servers": ["https://iam.example.org"],
    });
    let server = FakeServer::with_replies([FakeReply::json(200, &other)]);
    let run = Program::new()
        .run(&["login", "--api-url", &server.url, "--no-browser"])
        .expect(2);
    assert!(
        run.stderr.contains("https://api.example.org"),
        "{}",
        run.stderr
    );
    assert_eq!(server.requests().len(), 1);
}

/// A server whose access tokens after the first are valid, and that counts refreshes.
fn refreshing_server() -> FakeServer {
    let refreshes = Mutex::new(1);
    FakeServer::start(move |request| {
        match (route(request).as_str(), request.header("authorization")) {
            ("POST /oauth/token", _) => {
                let mut refreshes = refreshes.lock().unwrap();
                *refreshes += 1;
                tokens(*refreshes)
            }
            (_, "Bearer cat_1") => FakeReply::error(401, "UNAUTHORIZED"),
            ("POST /api/v1/cli/whoami", _) => whoami(),
            _ => FakeReply::error(404, "NOT_FOUND"),
        }
    })
}

#[test]
fn an_expired_token_is_refreshed_before_the_request() {
    let (program, server) = (Program::new(), refreshing_server());
    program.sign_in(&server, 1);
    program.run(&["whoami", "--api-url", &server.url]).expect(0);
    assert_eq!(
        routes(&server),
        ["POST /oauth/token", "POST /api/v1/cli/whoami"]
    );
    let stored = program.tokens().unwrap();
    assert_eq!(
        (&stored["access_token"], &stored["refresh_token"]),
        (&json!("cat_2"), &json!("crt_2"))
    );
}

#[test]
fn a_refused_token_is_refreshed_and_the_request_repeated() {
    let (program, server) = (Program::new(), refreshing_server());
    program.sign_in(&server, FAR);
    program.run(&["whoami", "--api-url", &server.url]).expect(0);
    assert_eq!(
        routes(&server),
        [
            "POST /api/v1/cli/whoami",
            "POST /oauth/token",
            "POST /api/v1/cli/whoami"
        ]
    );
}

/// Waits until a number of processes wait for the lock of a file.
#[cfg(target_os = "linux")]
fn wait_for_waiters(file: &std::fs::File, count: usize) {
    use std::os::unix::fs::MetadataExt;
    let inode = format!(":{} ", file.metadata().unwrap().ino());
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        let waiters = locks
            .lines()
            .filter(|line| line.contains("->") && line.contains(&inode));
        if waiters.count() == count {
            return;
        }
        assert!(
            Instant::now() < end,
            "no process waits for the lock:\n{locks}"
        );
        std::thread::yield_now();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn two_processes_with_one_expired_token_refresh_it_once() {
    let (program, server) = (Program::new(), refreshing_server());
    program.sign_in(&server, 1);
    let lock = lock_tokens(&program.config());
    let arguments = ["whoami", "--api-url", &server.url];
    let processes = [program.start(&arguments), program.start(&arguments)];
    wait_for_waiters(&lock, 2);
    drop(lock);
    for process in processes {
        Run::from(process.wait_with_output().unwrap()).expect(0);
    }
    let refreshes = routes(&server)
        .into_iter()
        .filter(|route| route == "POST /oauth/token");
    assert_eq!(refreshes.count(), 1);
}

#[test]
fn a_refused_refresh_deletes_the_tokens_and_asks_for_a_sign_in() {
    let (program, server) = (
        Program::new(),
        FakeServer::with_replies([oauth_error("invalid_grant")]),
    );
    program.sign_in(&server, 1);
    let run = program.run(&["whoami", "--api-url", &server.url]).expect(4);
    assert!(run.stderr.contains("core-cli login"), "{}", run.stderr);
    assert_eq!(program.tokens(), None);
}

#[test]
fn an_unreachable_server_keeps_the_tokens() {
    let (program, server) = (
        Program::new(),
        FakeServer::with_replies([FakeReply::error(500, "INTERNAL_ERROR")]),
    );
    program.sign_in(&server, 1);
    program.run(&["whoami", "--api-url", &server.url]).expect(1);
    assert!(program.tokens().is_some());
}

#[test]
fn tokens_are_not_sent_to_another_server() {
    let (program, server) = (Program::new(), refreshing_server());
    program.sign_in(&server, FAR);
    let other = FakeServer::with_replies([whoami()]);
    let run = program.run(&["whoami", "--api-url", &other.url]).expect(4);
    assert!(run.stderr.contains("core-cli login"), "{}", run.stderr);
    assert!(other.requests().is_empty());
}

#[test]
fn without_a_sign_in_commands_ask_for_one() {
    let run = Program::new()
        .run(&["platforms", "--output", "json"])
        .expect(4);
    let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(error["error"]["code"], "UNAUTHORIZED");
    assert!(
        error["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("core-cli login")
    );
}

#[test]
fn logout_ends_the_session_on_the_server_and_deletes_the_tokens() {
    let success = FakeReply::json(200, &json!({ "success": true }));
    let (program, server) = (Program::new(), FakeServer::with_replies([success]));
    program.sign_in(&server, FAR);
    program.run(&["logout", "--api-url", &server.url]).expect(0);
    assert_eq!(routes(&server), ["POST /api/auth/sign-out"]);
    assert_eq!(server.requests()[0].header("authorization"), "Bearer cat_1");
    assert_eq!(program.tokens(), None);
}

#[test]
fn logout_reports_a_server_that_did_not_end_the_session() {
    let (program, server) = (
        Program::new(),
        FakeServer::with_replies([FakeReply::error(500, "INTERNAL_ERROR")]),
    );
    program.sign_in(&server, FAR);
    let run = program.run(&["logout", "--api-url", &server.url]).expect(1);
    assert!(run.stderr.contains("/account/security"), "{}", run.stderr);
    assert_eq!(program.tokens(), None);
}

#[test]
fn an_api_key_is_sent_in_its_own_header() {
    let server = FakeServer::with_replies([platforms(&["engines"])]);
    let run = Program::new().run_at(&server, &["platforms"]).expect(0);
    assert!(run.stdout.contains("engines"), "{}", run.stdout);
    let request = &server.requests()[0];
    assert_eq!(
        (request.header("x-api-key"), request.header("authorization")),
        ("core_key", "")
    );
}

#[test]
fn another_token_is_sent_as_bearer() {
    let server = FakeServer::with_replies([platforms(&["engines"])]);
    let program = Program::new();
    let mut command = program.command(&["platforms", "--api-url", &server.url]);
    Run::from(command.env("CORE_TOKEN", "session-token").output().unwrap()).expect(0);
    assert_eq!(
        server.requests()[0].header("authorization"),
        "Bearer session-token"
    );
}
