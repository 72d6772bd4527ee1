//! Servers that refuse, fail, stop or do not respond.

use std::time::Duration;

use core_domain::kernel::Secret;
use core_domain::port::{BlobError, Blobs};
use core_s3::testing::{ACCESS_KEY_ID, SECRET_ACCESS_KEY};
use core_s3::{S3Blobs, S3Credentials, S3Error};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use core_domain::testing::blobs_suite::content_of;

use crate::world::{World, failure};

fn with_key(world: &World, id: &str, secret: &str) -> S3Blobs {
    let mut config = world.server.config("uploads/core");
    config.credentials = S3Credentials::Key {
        id: id.to_owned(),
        secret: Secret::new(secret),
        session_token: None,
    };
    world.client(&config)
}

#[tokio::test]
async fn wrong_credentials_are_an_error_that_names_the_cause_and_no_secret() {
    let world = World::new().await;
    world.blobs.put("upload-1", b"one".to_vec()).await.unwrap();
    for (id, secret, code) in [
        (ACCESS_KEY_ID, "wrong-sesame", "SignatureDoesNotMatch"),
        (
            "AKIAUNKNOWN000000000",
            SECRET_ACCESS_KEY,
            "InvalidAccessKeyId",
        ),
    ] {
        let blobs = with_key(&world, id, secret);
        for text in [
            failure(blobs.open("upload-1").await),
            failure(blobs.put("upload-2", b"two".to_vec()).await),
            failure(blobs.remove("upload-1").await),
            failure(blobs.older_than(Duration::ZERO).await),
        ] {
            assert!(text.contains("does not accept the credentials"), "{text}");
            assert!(text.contains(code), "{text}");
            assert!(
                !text.contains("sesame") && !text.contains("Sesame"),
                "{text}"
            );
        }
        let error = blobs.check("doctor-1").await.unwrap_err();
        assert!(matches!(error, S3Error::Credentials(_)), "{error:?}");
        assert!(error.advice().contains("access key"));
        assert!(!format!("{blobs:?}").contains("sesame"));
    }
    assert_eq!(world.server.keys().unwrap(), ["core/upload-1"]);
}

#[tokio::test]
async fn a_missing_bucket_is_a_failure_and_not_a_missing_blob() {
    let world = World::new().await;
    let blobs = world.client(&world.server.config("other-bucket"));
    for text in [
        failure(blobs.open("upload-1").await),
        failure(blobs.put("upload-1", b"one".to_vec()).await),
        failure(blobs.older_than(Duration::ZERO).await),
    ] {
        assert!(text.contains("the bucket does not exist"), "{text}");
    }
    let error = blobs.check("doctor-1").await.unwrap_err();
    assert!(error.advice().contains("create the bucket"), "{error:?}");
}

#[tokio::test]
async fn a_server_that_stops_is_an_error_and_the_store_works_again_with_it() {
    let world = World::new().await;
    let blobs = &world.blobs;
    blobs.put("upload-1", b"one".to_vec()).await.unwrap();
    world.server.stop().unwrap();
    for text in [
        failure(blobs.open("upload-1").await),
        failure(blobs.put("upload-1", b"two".to_vec()).await),
        failure(blobs.remove("upload-1").await),
        failure(blobs.older_than(Duration::ZERO).await),
    ] {
        assert!(text.contains("cannot be reached"), "{text}");
    }
    assert_eq!(world.local_files(), 0);
    world.server.start_again().await.unwrap();
    // The server has lost its objects.
    let missing = |error| matches!(error, BlobError::Missing);
    assert!(blobs.open("upload-1").await.is_err_and(missing));
    blobs.put("upload-1", b"two".to_vec()).await.unwrap();
    assert_eq!(content_of(blobs, "upload-1").await, b"two");
}

#[tokio::test]
async fn requests_that_fail_for_a_moment_are_repeated() {
    let world = World::new().await;
    let blobs = &world.blobs;
    world.server.fail(2).unwrap();
    blobs.put("upload-1", b"one".to_vec()).await.unwrap();
    world.server.fail(2).unwrap();
    assert_eq!(content_of(blobs, "upload-1").await, b"one");
    world.server.fail(1_000).unwrap();
    let text = failure(blobs.open("upload-1").await);
    assert!(text.contains("SlowDown"), "{text}");
    world.server.fail(0).unwrap();
    assert_eq!(content_of(blobs, "upload-1").await, b"one");
}

#[tokio::test]
async fn a_download_that_is_cut_off_is_continued() {
    let world = World::new().await;
    let content: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    world.blobs.put("upload-1", content.clone()).await.unwrap();
    world.server.cut(1).unwrap();
    assert!(content_of(&world.blobs, "upload-1").await == content);
    assert_eq!(world.server.cuts_left().unwrap(), "0");
}

#[tokio::test]
async fn a_server_that_accepts_and_never_responds_is_an_error_after_the_time_limit() {
    let world = World::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let silent = tokio::spawn(async move {
        let mut accepted = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            accepted.push(tokio::spawn(async move {
                let mut bytes = [0; 1_024];
                while stream.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
            }));
        }
    });
    let mut config = world.server.config("uploads");
    config.url = format!("s3://uploads?endpoint=http://{address}");
    config.options.request_timeout = Duration::from_millis(50);
    let blobs = world.client(&config);
    let text = failure(blobs.open("upload-1").await);
    assert!(text.contains("no response within 50ms"), "{text}");
    silent.abort();
}
