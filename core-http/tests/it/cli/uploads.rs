//! Accepted and refused upload bodies. A refused body leaves no file.

use std::sync::Arc;

use http::StatusCode;
use tokio::sync::Semaphore;

use super::harness::{FailingOperation, MAX_UPLOAD_BYTES, UploadHarness, pieces, slow};
use crate::world::SITE;

const FORM: (&str, &str) = ("content-type", "multipart/form-data; boundary=xyz");

fn form(name: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("--xyz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
    [head.as_bytes(), content, b"\r\n--xyz--\r\n"].concat()
}

#[tokio::test]
async fn the_content_type_must_match_the_bytes() {
    let harness = UploadHarness::new().await;
    let gzip = [&[0x1f, 0x8b], SITE].concat();
    let zip = [b"PK", SITE].concat();
    for (n, (kind, body, fits)) in [
        ("application/gzip", &gzip[..], true),
        ("application/zip", &zip, true),
        ("application/x-tar", SITE, true),
        ("Application/Octet-Stream; x=y", &zip, true),
        ("application/octet-stream", SITE, true),
        ("application/gzip", &zip, false),
        ("application/zip", SITE, false),
        ("application/x-tar", &gzip, false),
    ]
    .into_iter()
    .enumerate()
    {
        let branch = format!("b{n}");
        let headers = [("content-type", kind), ("x-core-deploy-branch", &branch)];
        let answer = harness.deploy(&headers, body).await;
        if fits {
            assert_eq!(answer.status, 202, "{kind}: {}", answer.json);
        } else {
            assert_eq!(answer.issues(), ["content-type: format_mismatch"], "{kind}");
        }
    }
    assert_eq!(harness.blobs.count(), (0, 5));
}

#[tokio::test]
async fn a_multipart_form_deploys_the_same_site_as_its_file_alone() {
    let harness = UploadHarness::new().await;
    let first = harness
        .deploy(&[FORM], &form("file", SITE))
        .await
        .expect(202);
    let alone = harness.deploy(&[], SITE).await.expect(200);
    assert_eq!(alone.json, first.json);
    assert_eq!(harness.blobs.count(), (0, 1));
}

#[tokio::test]
async fn invalid_sites_are_refused_with_the_reason_and_leave_no_file() {
    let harness = UploadHarness::new().await;
    let unsaid = ("content-type", "multipart/form-data");
    let (bad, none) = ("BAD_REQUEST", vec![]);
    for (headers, body, status, said) in [
        (none.clone(), b"link".to_vec(), 400, "file: symlink"),
        (none.clone(), b"bomb".to_vec(), 400, "file: too_large"),
        (none.clone(), b"junk".to_vec(), 400, "file: unknown_format"),
        (vec![FORM], form("site", SITE), 400, "file: required"),
        (none.clone(), Vec::new(), 400, bad),
        (vec![FORM], form("file", b""), 400, bad),
        (vec![FORM], SITE.to_vec(), 400, bad),
        (vec![FORM], form("file", SITE)[..80].to_vec(), 400, bad),
        (vec![unsaid], form("file", SITE), 400, bad),
        (
            none.clone(),
            vec![b'a'; MAX_UPLOAD_BYTES + 1],
            413,
            "PAYLOAD_TOO_LARGE",
        ),
        (none, b"bad sector".to_vec(), 502, "UPSTREAM_ERROR"),
    ] {
        let refused = harness.deploy(&headers, &body).await;
        assert!(!refused.json.to_string().contains("/srv"));
        let issue = refused.issues().pop();
        let code = issue.as_deref().unwrap_or(refused.code());
        assert_eq!((refused.status.as_u16(), code), (status, said));
        assert_eq!(harness.blobs.count(), (0, 0), "{said}");
    }
    assert!(harness.world.audit("deployment.created").await.is_empty());
}

#[tokio::test]
async fn a_body_longer_than_the_limit_or_its_content_length_is_refused() {
    let harness = UploadHarness::new().await;
    let said = [("content-length", "99")];
    let none = [];
    for (headers, count, status) in [
        (&none[..], MAX_UPLOAD_BYTES / 10 + 1, 413),
        (&said, 10, 413),
        // Exactly the maximum.
        (&none, MAX_UPLOAD_BYTES / 10, 202),
    ] {
        let (body, _) = pieces(count, b"0123456789");
        let answer = harness.send(headers, body).await;
        assert_eq!(answer.status, status, "{count}");
    }
    let (length, branch) = (MAX_UPLOAD_BYTES.to_string(), ("x-core-deploy-branch", "b"));
    let headers = [("content-length", length.as_str()), branch];
    let _ = harness
        .deploy(&headers, &[b'b'; MAX_UPLOAD_BYTES])
        .await
        .expect(202);
}

#[tokio::test]
async fn a_failure_to_store_an_upload_queues_nothing_and_reveals_no_path() {
    let harness = UploadHarness::new().await;
    let key = [("idempotency-key", "build-1")];
    for full in [FailingOperation::Staging, FailingOperation::Store] {
        *harness.blobs.full.lock().unwrap() = Some(full);
        let refused = harness.deploy(&key, SITE).await;
        assert!(!refused.json.to_string().contains("/srv"), "{full:?}");
        refused.expect_error(502, "UPSTREAM_ERROR");
        assert_eq!(harness.blobs.count(), (0, 0));
    }
    assert!(harness.world.audit("deployment.created").await.is_empty());
    *harness.blobs.full.lock().unwrap() = None;
    let _ = harness.deploy(&key, SITE).await.expect(202);
}

#[tokio::test]
async fn a_panic_leaves_no_file_and_frees_its_slots() {
    let harness = UploadHarness::new().await;
    for _ in 0..10 {
        let failed = harness.deploy(&[], b"panic").await;
        assert_eq!(failed.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(harness.blobs.count(), (0, 0));
    }
    let _ = harness.deploy(&[], SITE).await.expect(202);
}

#[tokio::test]
async fn a_client_that_disconnects_during_an_upload_leaves_no_file() {
    let harness = Arc::new(UploadHarness::new().await);
    let (reading, never) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (body, client) = (slow(&reading, &never), Arc::clone(&harness));
    let leaving = tokio::spawn(async move { client.send(&[], body).await });
    reading.acquire().await.unwrap().forget();
    assert_eq!(harness.blobs.count(), (1, 0));
    leaving.abort();
    assert!(leaving.await.unwrap_err().is_cancelled());
    assert_eq!(harness.blobs.count(), (0, 0));
}

#[tokio::test]
async fn malformed_and_repeated_headers_are_refused_not_ignored() {
    let harness = UploadHarness::new().await;
    let long = "a".repeat(256);
    let branch = "x-core-deploy-branch";
    for (name, values, issue) in [
        (
            branch,
            &["", "a b", "a:b", "é", "../x y", &long][..],
            "pattern",
        ),
        ("idempotency-key", &["", "a b", &long], "pattern"),
        ("content-length", &["many", "-1", ""], "invalid_type"),
    ] {
        for value in values {
            let refused = harness.deploy(&[(name, value)], SITE).await;
            let issues = refused.issues().join("").to_ascii_lowercase();
            assert_eq!(issues, format!("{name}: {issue}"), "{value}");
        }
    }
    let refused = harness.deploy(&[(branch, "a"), (branch, "b")], SITE).await;
    assert_eq!(refused.issues(), ["x-core-deploy-branch: pattern"]);
    let refused = harness.deploy(&[("accept", "text/html")], SITE).await;
    assert_eq!(refused.status, StatusCode::NOT_ACCEPTABLE);
    assert_eq!(harness.blobs.count(), (0, 0));
}
