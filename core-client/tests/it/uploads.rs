use std::time::Duration;

use core_client::{Client, DeployOptions, Error, RetryPolicy, Upload};
use serde_json::json;

use crate::fake::{FakeReply, FakeServer};

fn client(server: &FakeServer) -> Client {
    let policy = RetryPolicy {
        first_pause: Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    Client::builder(&server.url)
        .retry_policy(policy)
        .build()
        .unwrap()
}

fn deploy_reply() -> FakeReply {
    FakeReply::json(
        202,
        &json!({ "deploymentId": "d-1", "status": "queued", "projectName": "site" }),
    )
}

#[tokio::test]
async fn an_upload_is_sent_again_after_a_temporary_failure() {
    let server =
        FakeServer::with_replies([FakeReply::error(503, "SERVICE_UNAVAILABLE"), deploy_reply()]);
    let archive = Upload::from_writer("application/x-tar", |body| body.write_all(&[7; 300_000]));
    let options = DeployOptions {
        branch: Some("redesign".to_owned()),
        message: Some("a & b".to_owned()),
        ..DeployOptions::default()
    };
    let deployment = client(&server)
        .deploy("p-1", archive, &options)
        .await
        .unwrap();
    assert_eq!(deployment.deployment_id, "d-1");
    let received = server.requests();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].body.len(), 300_000);
    assert_eq!(received[0].body, received[1].body);
    assert_eq!(
        received[1].target,
        "/api/v1/cli/platforms/p-1/deploy?message=a%20%26%20b"
    );
    assert_eq!(received[1].header("x-core-deploy-branch"), "redesign");
    assert_eq!(
        received[0].header("idempotency-key"),
        received[1].header("idempotency-key")
    );
}

#[tokio::test]
async fn an_upload_that_cannot_be_read_is_not_repeated() {
    let server = FakeServer::with_replies([deploy_reply()]);
    let archive = Upload::from_writer("application/x-tar", |body| {
        body.write_all(&[7; 300_000])?;
        Err(std::io::Error::other("index.html has changed"))
    });
    let error = client(&server)
        .deploy("p-1", archive, &DeployOptions::default())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::Upload(reason) if reason.to_string().contains("index.html")),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_refused_upload_is_reported() {
    let server = FakeServer::with_replies([FakeReply::error(413, "PAYLOAD_TOO_LARGE")]);
    let archive = Upload::from_writer("application/x-tar", |body| body.write_all(&[7; 10]));
    let error = client(&server)
        .deploy("p-1", archive, &DeployOptions::default())
        .await
        .unwrap_err();
    assert!(error.is_code("PAYLOAD_TOO_LARGE"));
}
