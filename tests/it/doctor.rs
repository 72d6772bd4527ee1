//! `core-server doctor` on real surroundings.

use std::path::Path;
use std::process::Output;

use core_s3::testing::{ACCESS_KEY_ID, S3Server, SECRET_ACCESS_KEY};
use core_storage::testing::{self, IgnoredSettings, PgBouncer};
use core_stripe_fake::FakeStripe;
use tokio::net::TcpListener;

use crate::world::{Server, run};

/// Runs the command, and returns its exit status and its output.
async fn diagnose(data: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["doctor"]).collect();
    let Output { status, stdout, .. } = run(data, &arguments, "").await;
    (status.code(), String::from_utf8(stdout).unwrap())
}

/// Returns the lines about a subject.
fn lines_about<'o>(output: &'o str, subject: &str) -> Vec<&'o str> {
    let lines = output.lines();
    lines
        .filter(|line| line.contains(&format!(" {subject} ")))
        .collect()
}

/// Returns the address of a port that nothing listens on.
async fn closed_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test]
async fn a_new_folder_and_a_running_server_are_fine_and_nothing_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (status, output) = diagnose(&data, &[]).await;
    assert_eq!(status, Some(0), "{output}");
    assert!(
        lines_about(&output, "database")[0].contains("does not exist yet"),
        "{output}"
    );
    assert!(!data.exists());

    let server = Server::start(&data, &[]).await;
    let (status, output) = diagnose(&data, &[]).await;
    assert_eq!(status, Some(0), "{output}");
    // A slow or small disk is only a warning.
    for subject in ["database", "data folder", "disk", "infrastructure"] {
        let line = lines_about(&output, subject)[0];
        assert!(!line.starts_with("FAILURE"), "{output}");
    }
    assert!(!output.contains("does not exist"), "{output}");
    assert!(
        lines_about(&output, "mail")[0].starts_with("WARNING"),
        "{output}"
    );
    assert!(server.terminate().await.success());
}

#[tokio::test]
async fn a_new_database_and_one_of_this_version_are_fine_and_the_clock_is_compared() {
    let database = testing::postgres().await;
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--database-url", &database.url];
    let (status, output) = diagnose(folder.path(), &arguments).await;
    assert_eq!(status, Some(0), "{output}");
    let line = lines_about(&output, "database")[0];
    assert!(
        line.starts_with("WARNING") && line.contains("no tables yet"),
        "{output}"
    );
    let server = Server::start(folder.path(), &arguments).await;
    let (status, output) = diagnose(folder.path(), &arguments).await;
    assert_eq!(status, Some(0), "{output}");
    let clock = lines_about(&output, "clock")[0];
    assert!(!clock.starts_with("FAILURE"), "{output}");
    assert!(
        lines_about(&output, "keys")
            .join("\n")
            .contains("CORE_SECRET"),
        "{output}"
    );
    assert!(server.terminate().await.success());
}

#[tokio::test]
async fn a_pooler_needs_a_direct_url_and_a_server_works_through_it_postgres() {
    let database = testing::postgres().await;
    let pooler = PgBouncer::start(&database, 4, IgnoredSettings::Refused).await;
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--database-url", &pooler.url];
    let (status, output) = diagnose(folder.path(), &arguments).await;
    assert_eq!(status, Some(1), "{output}");
    let line = lines_about(&output, "database")[0];
    assert!(
        line.starts_with("FAILURE") && line.ends_with("(direct_url, DATABASE_DIRECT_URL)"),
        "{output}"
    );

    let direct = ["--database-direct-url", &database.url];
    let arguments = [arguments, direct].concat();
    let server = Server::start(folder.path(), &arguments).await;
    let (status, output) = diagnose(folder.path(), &arguments).await;
    assert_eq!(status, Some(0), "{output}");
    for subject in ["database", "pooler"] {
        let line = lines_about(&output, subject)[0];
        assert!(!line.starts_with("FAILURE"), "{output}");
    }
    assert!(server.terminate().await.success());
}

#[tokio::test]
async fn each_unreachable_neighbour_is_a_failure_and_no_secret_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let closed = closed_address().await;
    let database = format!("postgres://core:database-password@{closed}/core");
    let smtp = format!("smtp://ada:mail-password@{closed}?tls=none");
    let cloudflare = format!("http://{closed}");
    let billing = format!("http://{closed}");
    let arguments = [
        ("--database-url", database.as_str(), "database"),
        ("--smtp-url", &smtp, "mail"),
        ("--cloudflare-api-base-url", &cloudflare, "infrastructure"),
        ("--billing-url", &billing, "services"),
        (
            "--iam-public-url",
            "https://iam.does-not-exist.invalid",
            "addresses",
        ),
    ];
    let others = [
        "--mail-from",
        "Core <core@example.org>",
        "--cloudflare-api-token",
        "cloudflare-token-of-a-test",
        "--cloudflare-account-id",
        "0123456789abcdef0123456789abcdef",
        "--auth-api-key",
        "service-key-of-a-test",
    ];
    let all = arguments
        .iter()
        .flat_map(|(option, value, _)| [*option, *value]);
    let all: Vec<&str> = all.chain(others).collect();
    let (status, output) = diagnose(folder.path(), &all).await;
    assert_eq!(status, Some(1), "{output}");
    for (option, _, subject) in arguments {
        assert!(
            lines_about(&output, subject)[0].starts_with("FAILURE"),
            "{option}: {output}"
        );
    }
    for secret in [
        "database-password",
        "mail-password",
        "token-of-a-test",
        "key-of-a-test",
    ] {
        assert!(!output.contains(secret), "{output}");
    }
}

#[tokio::test]
async fn the_bucket_for_uploads_is_written_and_read_and_a_failure_says_what_to_do() {
    let bucket = S3Server::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let doctor = async |url: &str, secret: &str| {
        let arguments = [
            "--blobs-url",
            url,
            "--s3-access-key-id",
            ACCESS_KEY_ID,
            "--s3-secret-access-key",
            secret,
        ];
        let (status, output) = diagnose(folder.path(), &arguments).await;
        assert!(!output.contains(secret), "{output}");
        (status, lines_about(&output, "uploads").join("\n"))
    };
    let url = bucket.url("uploads/core");
    let (status, line) = doctor(&url, SECRET_ACCESS_KEY).await;
    assert_eq!(status, Some(0), "{line}");
    // The server of this test has no TLS.
    assert!(
        line.starts_with("WARNING") && line.contains("https"),
        "{line}"
    );
    assert!(bucket.keys().unwrap().is_empty());

    let closed = format!("s3://uploads?endpoint=http://{}", closed_address().await);
    for (url, secret, advice) in [
        (url.as_str(), "wrong-secret", "check the id and the secret"),
        (
            &bucket.url("other-bucket"),
            SECRET_ACCESS_KEY,
            "create the bucket",
        ),
        (&closed, SECRET_ACCESS_KEY, "check the endpoint"),
    ] {
        let (status, line) = doctor(url, secret).await;
        assert_eq!(status, Some(1), "{line}");
        assert!(
            line.starts_with("FAILURE") && line.contains(advice),
            "{line}"
        );
    }
}

#[tokio::test]
async fn a_key_that_stripe_refuses_is_a_failure() {
    let stripe = FakeStripe::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (url, secret) = (stripe.base_url(), stripe.webhook_secret());
    for (key, status, parts) in [
        (stripe.secret_key(), 0, ["ok", "test mode"]),
        (
            "sk_test_wrong_sesame".to_owned(),
            1,
            ["FAILURE", "check the secret key"],
        ),
    ] {
        let arguments = [
            "--stripe-secret-key",
            &key,
            "--stripe-webhook-secret",
            &secret,
            "--stripe-api-base-url",
            &url,
        ];
        let (code, output) = diagnose(folder.path(), &arguments).await;
        assert_eq!(code, Some(status), "{output}");
        let line = lines_about(&output, "payments").join("\n");
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
        assert!(!output.contains(&key), "{output}");
    }
    // The command only reads.
    assert!(stripe.requests().iter().all(|one| one.method == "GET"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_password_that_redis_refuses_is_a_failure() {
    let options = ["--requirepass", "hidden"];
    let server = core_redis::testing::RedisServer::start(&options).await;
    let server = server.unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (login, status, begin) in [
        (":hidden@", 0, "ok"),
        (":open-sesame@", 1, "FAILURE"),
        ("", 1, "FAILURE"),
    ] {
        let url = format!("redis://{login}127.0.0.1:{}", server.port());
        let (code, output) = diagnose(folder.path(), &["--redis-url", &url]).await;
        assert_eq!(code, Some(status), "{output}");
        let line = lines_about(&output, "redis").join("\n");
        assert!(line.starts_with(begin), "{line}");
        assert!(status == 0 || line.contains("the password"), "{line}");
        assert!(!output.contains("sesame"), "{output}");
    }
}

#[tokio::test]
async fn each_configured_name_server_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    // A socket that no server reads.
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let set = format!("settings.dns.nameservers=[\"{address}\"]");
    let arguments = ["--set", &set, "--set", "settings.dns.timeout=500ms"];
    let (code, output) = diagnose(folder.path(), &arguments).await;
    assert_eq!(code, Some(1), "{output}");
    let line = lines_about(&output, "name servers").join("\n");
    assert!(
        line.starts_with("FAILURE") && line.contains(&address),
        "{line}"
    );
}

#[tokio::test]
async fn a_master_key_is_advised_before_the_first_start_and_never_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let (_, output) = diagnose(folder.path(), &[]).await;
    let advice = "set CORE_MASTER_KEY before the first start";
    assert!(output.contains(advice), "{output}");
    let server = Server::start(folder.path(), &[]).await;
    assert!(server.terminate().await.success());
    let (_, output) = diagnose(folder.path(), &[]).await;
    assert!(!output.contains(advice), "{output}");
    assert!(output.contains("cannot be changed"), "{output}");
    std::fs::remove_file(folder.path().join("secret")).unwrap();
    let (_, output) = diagnose(folder.path(), &[]).await;
    assert!(output.contains("restore this file"), "{output}");
}
