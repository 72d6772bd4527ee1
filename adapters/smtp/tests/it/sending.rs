//! Tests of the mails that arrive, and of the connections that are used.

use core_domain::port::Mailer;
use serde_json::json;

use crate::server::{LINK, Server, id, mail, mailer, send};

#[tokio::test]
async fn a_mail_arrives_as_it_was_written_in_every_language() {
    let mut server = Server::start(json!({}));
    let mailer = mailer(&format!("smtp://127.0.0.1:{}?tls=none", server.port));
    let text = format!(
        "Guten Tag, Zoë!\n.\nFrom here:\n{LINK}\n{}\n\n=20 \u{1F600}",
        "ä".repeat(2_000)
    );
    mailer.send(&id(), &mail(&text)).await.unwrap();
    server.expect("connection");
    let arrived = server.expect("mail");
    assert_eq!(arrived["problems"], json!([]));
    assert_eq!(arrived["sender"], "no-reply@core.test");
    assert_eq!(arrived["to"], json!(["ada@example.org"]));
    assert_eq!(arrived["ascii"], true);
    let headers = &arrived["headers"];
    assert_eq!(headers["From"], "Köre <no-reply@core.test>");
    assert_eq!(headers["To"], "ada@example.org");
    assert_eq!(headers["Subject"], mail("").subject);
    assert_eq!(headers["Message-ID"], format!("<{}@core.test>", id()));
    assert_eq!(headers["Date"], "Thu, 06 Nov 2025 21:41:55 +0000");
    let lines = |field: &str| arrived[field].as_str().unwrap().replace("\r\n", "\n");
    assert_eq!(lines("text"), format!("{text}\n"));
    assert_eq!(lines("html"), format!("<p>{text}</p>\n"));
}

#[tokio::test]
async fn mails_share_a_connection_and_a_closed_connection_is_replaced() {
    let mut server = Server::start(json!({}));
    let shared = mailer(&format!("smtp://127.0.0.1:{}?tls=none", server.port));
    send(&shared).await.unwrap();
    send(&shared).await.unwrap();
    let names = [(); 3].map(|()| server.event()["event"].clone());
    assert_eq!(names, ["connection", "mail", "mail"]);
    let mut closing = Server::start(json!({ "closes": true }));
    let mailer = mailer(&format!("smtp://127.0.0.1:{}?tls=none", closing.port));
    for _ in 0..2 {
        send(&mailer).await.unwrap();
        closing.expect("connection");
        closing.expect("mail");
        closing.expect("closed");
    }
}
