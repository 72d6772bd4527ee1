//! The credentials of a role, which a service of the machine returns.

use std::time::Duration;

use core_domain::port::Blobs;
use core_s3::S3Credentials;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use core_domain::testing::blobs_suite::content_of;

use crate::world::World;

/// Answers one request for credentials, and returns its text.
async fn answer(listener: TcpListener, body: String) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
    }
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    String::from_utf8(request).unwrap()
}

#[tokio::test]
async fn without_a_key_the_credentials_of_the_role_are_fetched_and_used() {
    let world = World::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/role", listener.local_addr().unwrap());
    let service = tokio::spawn(answer(listener, world.server.role_credentials().unwrap()));
    let token_file = world.folder.path().join("token");
    std::fs::write(&token_file, "identity-of-the-pod").unwrap();
    let variables = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", uri.as_str()),
        (
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
            token_file.to_str().unwrap(),
        ),
        // A variable of another purpose is ignored.
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut config = world.server.config("uploads");
    config.credentials = S3Credentials::role(variables);
    let blobs = world.client(&config);
    blobs.put("upload-1", b"one".to_vec()).await.unwrap();
    assert_eq!(content_of(&blobs, "upload-1").await, b"one");
    assert_eq!(
        blobs.older_than(Duration::ZERO).await.unwrap(),
        ["upload-1"]
    );
    let request = service.await.unwrap();
    assert!(request.starts_with("GET /role "), "{request}");
    assert!(request.contains("identity-of-the-pod"), "{request}");
}
