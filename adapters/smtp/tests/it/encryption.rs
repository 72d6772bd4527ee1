//! Tests of TLS and logins.

use serde_json::json;

use crate::server::{Certificates, PASSWORD, Server, mailer, send, transient};

/// Returns the user and this password in the form of a URL.
fn login(password: &str) -> String {
    let encode = |byte: u8| format!("%{byte:02X}");
    let password: String = password.bytes().map(encode).collect();
    format!("core%40example.org:{password}")
}

#[tokio::test]
async fn login_and_mail_are_encrypted_with_implicit_tls_and_with_starttls() {
    let certificates = Certificates::of("127.0.0.1");
    for (kind, scheme) in [("starttls", "smtp"), ("implicit", "smtps")] {
        let mut server = Server::with_tls(kind, &certificates, true);
        let (port, ca) = (server.port, certificates.ca());
        let url = format!("{scheme}://{}@127.0.0.1:{port}?{ca}", login(PASSWORD));
        send(&mailer(&url)).await.unwrap();
        server.expect("connection");
        if kind == "starttls" {
            server.expect("starttls");
        }
        let arrived = server.expect("mail");
        let how = (&arrived["encrypted"], &arrived["user"]);
        assert_eq!(how, (&json!(true), &json!("core@example.org")));
    }
}

#[tokio::test]
async fn an_untrusted_server_receives_no_mail_and_no_password() {
    let (ours, theirs) = (Certificates::of("127.0.0.1"), Certificates::of("127.0.0.1"));
    let elsewhere = Certificates::of("mail.example.org");
    for (kind, scheme) in [("starttls", "smtp"), ("implicit", "smtps")] {
        for (shown, trusted) in [(&theirs, &ours), (&elsewhere, &elsewhere)] {
            let mut server = Server::with_tls(kind, shown, true);
            let (port, ca) = (server.port, trusted.ca());
            let url = format!("{scheme}://{}@127.0.0.1:{port}?{ca}", login(PASSWORD));
            let why = transient(send(&mailer(&url)).await);
            assert!(why.contains("certificate"), "{why}");
            if kind == "starttls" {
                server.expect("connection");
            }
            let url = format!("{scheme}://{}@127.0.0.1:{port}", login(PASSWORD));
            transient(send(&mailer(&url)).await);
        }
    }
}

#[tokio::test]
async fn without_starttls_no_mail_is_sent_unless_the_url_allows_it() {
    let mut server = Server::start(json!({}));
    let port = server.port;
    let why = transient(send(&mailer(&format!("smtp://127.0.0.1:{port}"))).await);
    assert!(why.contains("not offer STARTTLS"), "{why}");
    server.expect("connection");
    let url = format!("smtp://127.0.0.1:{port}?tls=opportunistic");
    send(&mailer(&url)).await.unwrap();
    server.expect("connection");
    assert_eq!(server.expect("mail")["encrypted"], false);
    let certificates = Certificates::of("127.0.0.1");
    let mut offering = Server::with_tls("starttls", &certificates, false);
    let (port, ca) = (offering.port, certificates.ca());
    let url = format!("smtp://127.0.0.1:{port}?tls=opportunistic&{ca}");
    send(&mailer(&url)).await.unwrap();
    offering.expect("connection");
    offering.expect("starttls");
    assert_eq!(offering.expect("mail")["encrypted"], true);
}

#[tokio::test]
async fn a_refused_login_is_retried_and_the_error_does_not_contain_the_password() {
    let mut server = Server::start(json!({ "login": ["core@example.org", PASSWORD] }));
    let port = server.port;
    let url = format!("smtp://{}@127.0.0.1:{port}?tls=none", login("wrong-sesame"));
    let why = transient(send(&mailer(&url)).await);
    assert!(why.contains("login") && why.contains("535"), "{why}");
    server.expect("connection");
    server.expect("unknown login");
    // A mail is also retried if the client did not log in at all.
    let why = transient(send(&mailer(&format!("smtp://127.0.0.1:{port}?tls=none"))).await);
    assert!(why.contains("530"), "{why}");
    server.expect("connection");
    let url = format!("smtp://{}@127.0.0.1:{port}?tls=none", login(PASSWORD));
    send(&mailer(&url)).await.unwrap();
    server.expect("connection");
    assert_eq!(server.expect("mail")["user"], "core@example.org");
}

#[tokio::test]
async fn a_check_signs_in_as_for_a_mail_and_sends_none() {
    let certificates = Certificates::of("127.0.0.1");
    for (kind, scheme) in [("starttls", "smtp"), ("implicit", "smtps")] {
        let mut server = Server::with_tls(kind, &certificates, true);
        let (port, ca) = (server.port, certificates.ca());
        let url = |password: &str| format!("{scheme}://{}@127.0.0.1:{port}?{ca}", login(password));
        mailer(&url(PASSWORD)).check().await.unwrap();
        let error = mailer(&url("wrong-sesame")).check().await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("535") && !text.contains("sesame"), "{text}");
        assert!(error.advice().contains("password"), "{error}");
        // The next event after those of both connections is that of a mail.
        send(&mailer(&url(PASSWORD))).await.unwrap();
        let events: Vec<_> = std::iter::repeat_with(|| server.event())
            .take_while(|event| event["event"] != "mail")
            .collect();
        let connections = events.iter().filter(|event| event["event"] == "connection");
        assert_eq!(connections.count(), 3, "{events:?}");
    }
}

#[tokio::test]
async fn a_check_names_a_server_without_tls_an_untrusted_one_and_a_missing_one() {
    let server = Server::start(json!({}));
    let url = format!("smtp://127.0.0.1:{}", server.port);
    let error = mailer(&url).check().await.unwrap_err();
    assert!(error.to_string().contains("not offer STARTTLS"), "{error}");
    assert!(error.advice().contains("tls"), "{error}");
    let url = format!("smtp://127.0.0.1:{}?tls=none", server.port);
    mailer(&url).check().await.unwrap();
    let certificates = Certificates::of("127.0.0.1");
    let server = Server::with_tls("implicit", &certificates, false);
    let other = Certificates::of("127.0.0.1");
    let url = format!("smtps://127.0.0.1:{}?{}", server.port, other.ca());
    let error = mailer(&url).check().await.unwrap_err();
    assert!(error.advice().contains("certificate"), "{error}");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("smtp://{}?tls=none", closed.local_addr().unwrap());
    drop(closed);
    let error = mailer(&url).check().await.unwrap_err();
    assert!(error.advice().contains("firewall"), "{error}");
}

#[test]
fn invalid_certificates_are_refused_when_the_mailer_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let made = || {
        let url = format!("smtps://mail.example.org?ca={}", file.display());
        let from = "no-reply@core.test".parse().unwrap();
        core_smtp::SmtpMailer::new(url.parse().unwrap(), from)
    };
    assert!(made().is_err(), "the file does not exist");
    for text in [
        "",
        "no certificate",
        "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n",
    ] {
        std::fs::write(&file, text).unwrap();
        assert!(made().is_err(), "{text}");
    }
}
