//! Receivers with a scripted response.

use std::time::Duration;

use core_domain::port::WebhookRequest;
use core_domain::shared::{WebhookTargets, WebhookUrl};
use core_webhooks::HttpSender;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) const ANYWHERE: WebhookTargets = WebhookTargets {
    allow_http: true,
    allow_private_addresses: true,
};

/// Creates a sender with a timeout that is long enough for a busy machine.
pub(crate) fn sender(targets: WebhookTargets) -> HttpSender {
    HttpSender::new(targets, Duration::from_secs(10)).unwrap()
}

pub(crate) fn request(url: &str) -> WebhookRequest {
    WebhookRequest {
        url: WebhookUrl::parse(url).unwrap(),
        id: "msg-1".to_owned(),
        timestamp: "1614265330".to_owned(),
        signature: "v1,one v1,two".to_owned(),
        body: r#"{"test": 2432232314}"#.to_owned(),
    }
}

/// Opens a listener on the loopback interface. Returns it and its port.
pub(crate) async fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Reads a request to its end, sends this response, and waits until the sender closes the connection. Returns the
/// request.
pub(crate) async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: String,
) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"2432232314}") {
        assert_ne!(
            stream.read_buf(&mut read).await.unwrap(),
            0,
            "the request ends too early"
        );
    }
    // A sender that has read enough closes the connection before the end of the response.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.read(&mut [0]).await;
    String::from_utf8(read).unwrap()
}

/// Starts a receiver for one request. Returns its task, whose result is the request, and its port.
pub(crate) async fn receiver(answer: impl Into<String>) -> (JoinHandle<String>, u16) {
    let ((listener, port), answer) = (listener().await, answer.into());
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        exchange(stream, answer).await
    });
    (serving, port)
}
