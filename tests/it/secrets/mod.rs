//! Secrets of a complete installation. Each secret is used, and then searched for in all places where it must not be.

mod errors;
mod factors;
mod failures;
mod marks;
mod remains;
mod story;

use std::path::Path;

use core_storage::testing::{connect, postgres};

use self::marks::Marks;
use self::story::Story;
use crate::world::{Call, Installation, Server, checked_configuration};

const SERVICE_KEY: &str = "marked-service-key-7Qx+/4tZ";
const SECRET: &str = "5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2";
const MASTER_KEY: &str = "3a57e23a57e23a57e23a57e23a57e23a57e23a57e23a57e23a57e23a57e23a57";
const SMTP_PASSWORD: &str = "marked-smtp-password-Zk8";

/// The most detailed log level, including the database drivers.
const LOG_LEVEL: &str = "trace";

/// IAM's public URL. Passkeys need a domain name. The system chooses the actual ports.
const IAM: &str = "http://localhost:8081";

fn environment() -> Vec<(&'static str, String)> {
    vec![
        ("AUTH_API_KEY", SERVICE_KEY.to_owned()),
        ("CORE_SECRET", SECRET.to_owned()),
        ("CORE_MASTER_KEY", MASTER_KEY.to_owned()),
        ("CORE_TRUSTED_PROXIES", "127.0.0.1".to_owned()),
        ("RUST_LOG", LOG_LEVEL.to_owned()),
    ]
}

/// The environment with a mail server that cannot be reached.
fn with_mail_server() -> Vec<(&'static str, String)> {
    let url = format!("smtp://core:{SMTP_PASSWORD}@127.0.0.1:1?tls=none");
    let mut environment = environment();
    environment.push(("SMTP_URL", url));
    environment.push(("MAIL_FROM", "core@example.org".to_owned()));
    environment
}

fn settings_marked() -> Marks {
    let mut marks = Marks::default();
    marks.text("the service key", SERVICE_KEY);
    marks.text("the secret", SECRET);
    marks.text("the master key", MASTER_KEY);
    marks.text("the password of the mail server", SMTP_PASSWORD);
    marks
}

/// Uses every kind of secret, and searches for all of them in places that do not depend on the store. Returns them.
async fn use_all_secrets(data: &Path, arguments: &[&str], database: Option<&str>) -> Marks {
    let arguments = &[arguments, &["--iam-public-url", IAM]].concat();
    let mut marks = settings_marked();
    let server = Server::start_with(data, arguments, &environment()).await;
    let mut story = Story::of(&server, data, &mut marks);
    story.live().await;
    story.provoke().await;
    if let Some(url) = database {
        story.fail(&connect(url).await).await;
    }
    story.read_audit().await;
    let (status, log) = server.terminate_with_log().await;
    assert!(status.success());

    let server = Server::start_with(data, arguments, &with_mail_server()).await;
    let body = serde_json::json!({ "email": "ada@example.org" });
    let asked = Call::post("/api/auth/sign-in/magic-link", &body);
    let _ = server.send("iam", asked).await.expect(200);
    server.log().until_logged("will be retried").await;
    let (status, log_with_mail_server) = server.terminate_with_log().await;
    assert!(status.success());

    assert!(
        log.contains("a mail was written"),
        "the log contains no message about a mail"
    );
    let search = marks.search();
    for log in [log, log_with_mail_server] {
        search.finds_nothing_in("the log", log.as_bytes());
        assert!(!log.contains("$argon2"), "the log contains a password hash");
    }
    let shown = checked_configuration(data, arguments, &with_mail_server()).await;
    assert!(shown.contains("smtp_url"), "{shown}");
    search.finds_nothing_in("the output of check-config", shown.as_bytes());
    marks.absent_from_answers();
    marks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_in_the_log_the_audit_an_error_or_a_sqlite_file() {
    let data = tempfile::tempdir().unwrap();
    let marks = use_all_secrets(data.path(), &[], None).await;
    let files = remains::files(data.path());
    assert!(files.iter().any(|(name, _)| name.ends_with("core.sqlite")));
    let search = marks.search_for_store();
    for (name, content) in &files {
        search.finds_nothing_in(name, content);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_in_the_log_the_audit_an_error_or_a_postgres_table() {
    let data = tempfile::tempdir().unwrap();
    let database = postgres().await;
    let arguments = ["--database-url", &database.url];
    let marks = use_all_secrets(data.path(), &arguments, Some(&database.url)).await;
    let tables = remains::tables(&connect(&database.url).await).await;
    assert!(
        tables
            .iter()
            .any(|(name, rows)| name.ends_with("users") && !rows.is_empty())
    );
    let search = marks.search_for_store();
    for (name, rows) in &tables {
        search.finds_nothing_in(name, rows.as_bytes());
    }
    for (name, content) in &remains::files(data.path()) {
        search.finds_nothing_in(name, content);
    }
}
