//! Tests of the server's replies and the resulting errors.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpListener;

use crate::server::{LINK, Server, mailer, permanent, send, transient};

#[tokio::test]
async fn a_temporarily_refused_mail_is_accepted_on_the_next_attempt() {
    for phase in ["rcpt", "data"] {
        let mut server = Server::start(json!({ phase: ["451 4.7.1 Greylisted, come again"] }));
        let mailer = mailer(&format!("smtp://127.0.0.1:{}?tls=none", server.port));
        let why = transient(send(&mailer).await);
        assert!(why.contains("451") && why.contains("Greylisted"), "{why}");
        server.expect("connection");
        server.expect("refused");
        send(&mailer).await.unwrap();
        server.expect("connection");
        server.expect("mail");
    }
}

#[tokio::test]
async fn a_permanently_refused_mail_is_not_retried_and_the_error_does_not_contain_its_text() {
    for (phase, reply) in [
        ("rcpt", "550 5.1.1 No such user here".to_owned()),
        ("data", format!("554 5.7.1 Spam: {LINK}")),
    ] {
        let mut server = Server::start(json!({ phase: [reply] }));
        let mailer = mailer(&format!("smtp://127.0.0.1:{}?tls=none", server.port));
        let why = permanent(send(&mailer).await);
        assert!(why.contains(&reply[..3]), "{why}");
        server.expect("connection");
        server.expect("refused");
        // The refusal does not affect the next mail.
        send(&mailer).await.unwrap();
        server.expect("connection");
        server.expect("mail");
    }
}

#[tokio::test]
async fn a_server_that_never_responds_times_out() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    for scheme in ["smtp", "smtps"] {
        let mailer = mailer(&format!("{scheme}://127.0.0.1:{port}"));
        let mailer = mailer.with_timeout(Duration::from_millis(200));
        let asked = Instant::now();
        let why = transient(send(&mailer).await);
        assert!(why.contains("in time"), "{why}");
        assert!(asked.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn mail_is_retried_if_the_server_is_unreachable_or_not_an_smtp_server() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = gone.local_addr().unwrap().port();
    drop(gone);
    let away = mailer(&format!("smtp://127.0.0.1:{port}?tls=none"));
    let why = transient(send(&away).await);
    assert!(why.contains("cannot be reached"), "{why}");
    for greeting in ["554 5.3.2 No service here\r\n", "HTTP/1.1 400\r\n\r\n", ""] {
        let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = other.local_addr().unwrap().port();
        let answering = tokio::spawn(async move {
            use tokio::io::AsyncWriteExt;
            let (mut stream, _) = other.accept().await.unwrap();
            stream.write_all(greeting.as_bytes()).await.unwrap();
        });
        let other = mailer(&format!("smtp://127.0.0.1:{port}?tls=none"));
        transient(send(&other).await);
        answering.await.unwrap();
    }
}
