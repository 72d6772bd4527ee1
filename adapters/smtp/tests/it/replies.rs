//! What a server says to a mail, and what becomes of it.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpListener;

use crate::server::{LINK, Server, mailer, permanent, send, transient};

#[tokio::test]
async fn a_mail_that_is_put_off_is_taken_the_next_time() {
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
async fn a_mail_that_is_refused_never_comes_again_and_nothing_of_its_text_is_told() {
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
        // The next one is not the worse for it.
        send(&mailer).await.unwrap();
        server.expect("connection");
        server.expect("mail");
    }
}

#[tokio::test]
async fn a_server_that_accepts_and_never_answers_is_given_up_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    for scheme in ["smtp", "smtps"] {
        let mailer = mailer(&format!("{scheme}://127.0.0.1:{port}"));
        let mailer = mailer.timeout(Duration::from_millis(200));
        let asked = Instant::now();
        let why = transient(send(&mailer).await);
        assert!(why.contains("in time"), "{why}");
        assert!(asked.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn a_server_that_is_away_or_is_none_is_tried_again_later() {
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
