//! Which bodies are taken, and what is said about the others.

use http::StatusCode;

use crate::world::{MOST, SITE, World, nothing, pieces};

const FORM: (&str, &str) = ("content-type", "multipart/form-data; boundary=xyz");

fn form(name: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("--xyz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
    [head.as_bytes(), content, b"\r\n--xyz--\r\n"].concat()
}

#[tokio::test]
async fn every_content_type_is_taken_and_must_fit_the_bytes() {
    let gzip = [&[0x1f, 0x8b], SITE].concat();
    let zip = [b"PK", SITE].concat();
    for (n, (kind, body, fits)) in [
        ("application/gzip", &gzip[..], true),
        ("application/zip", &zip, true),
        ("application/x-tar", SITE, true),
        ("application/octet-stream", &gzip, true),
        ("Application/Octet-Stream; x=y", &zip, true),
        ("application/octet-stream", SITE, true),
        ("application/gzip", &zip, false),
        ("application/zip", SITE, false),
        ("application/x-tar", &gzip, false),
    ]
    .into_iter()
    .enumerate()
    {
        let world = World::new().await;
        let branch = format!("b{n}");
        let headers = [("content-type", kind), ("x-core-deploy-branch", &branch)];
        let answer = world.deploy(&headers, body).await;
        if fits {
            assert_eq!(answer.status, StatusCode::ACCEPTED, "{kind}");
        } else {
            assert_eq!(answer.issues(), ["content-type: format_mismatch"], "{kind}");
            assert_eq!(world.kept.count(), 0);
        }
    }
}

#[tokio::test]
async fn a_form_brings_the_same_site_as_its_file_alone() {
    let world = World::new().await;
    let first = world.deploy(&[FORM], &form("file", SITE)).await;
    assert_eq!(first.status, StatusCode::ACCEPTED);
    let alone = world.deploy(&[], SITE).await;
    assert_eq!(alone.status, StatusCode::OK);
    assert_eq!(alone.json["deploymentId"], first.json["deploymentId"]);
}

#[tokio::test]
async fn a_form_that_is_none_and_one_without_a_file_are_refused() {
    let world = World::new().await;
    let missing = world.deploy(&[FORM], &form("site", SITE)).await;
    assert_eq!(missing.issues(), ["file: required"]);
    let empty = world.deploy(&[FORM], &form("file", b"")).await;
    assert_eq!(empty.status, StatusCode::BAD_REQUEST);
    let none = world.deploy(&[FORM], SITE).await;
    assert_eq!(
        (none.status, none.code()),
        (StatusCode::BAD_REQUEST, "BAD_REQUEST")
    );
    let unsaid = ("content-type", "multipart/form-data");
    let unsaid = world.deploy(&[unsaid], &form("file", SITE)).await;
    assert_eq!(unsaid.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn any_other_content_type_is_refused_unread() {
    let world = World::new().await;
    for kind in [
        "application/json",
        "text/html",
        "image/png",
        "application/x-7z-compressed",
    ] {
        let (body, read) = pieces(1, SITE);
        let headers = [("content-type", kind)];
        let refused = world
            .deploy_as(&world.ada(), &world.path(), &headers, body)
            .await;
        assert_eq!(refused.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
        assert_eq!(refused.code(), "UNSUPPORTED_MEDIA_TYPE");
        assert!(!read.load(std::sync::atomic::Ordering::Relaxed));
    }
}

#[tokio::test]
async fn no_body_is_no_site() {
    let world = World::new().await;
    let refused = world
        .deploy_as(&world.ada(), &world.path(), &[], nothing())
        .await;
    assert_eq!(
        (refused.status, refused.code()),
        (StatusCode::BAD_REQUEST, "BAD_REQUEST")
    );
}

#[tokio::test]
async fn too_much_is_refused_by_its_announcement_unread_and_otherwise_while_it_comes() {
    let world = World::new().await;
    let too_long = (MOST + 1).to_string();
    let (body, read) = pieces(1, SITE);
    let announced = [("content-length", too_long.as_str())];
    let refused = world
        .deploy_as(&world.ada(), &world.path(), &announced, body)
        .await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(refused.code(), "PAYLOAD_TOO_LARGE");
    assert!(!read.load(std::sync::atomic::Ordering::Relaxed));

    let (body, read) = pieces(MOST / 10 + 1, b"0123456789");
    let refused = world
        .deploy_as(&world.ada(), &world.path(), &[], body)
        .await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(read.load(std::sync::atomic::Ordering::Relaxed));
    assert_eq!(world.kept.count(), 0);

    let (body, _) = pieces(MOST / 10, b"0123456789");
    let fits = world
        .deploy_as(&world.ada(), &world.path(), &[], body)
        .await;
    assert_eq!(
        fits.status,
        StatusCode::ACCEPTED,
        "exactly as much as may be"
    );

    let strange = [("content-length", "many")];
    let (body, _) = pieces(1, SITE);
    let refused = world
        .deploy_as(&world.ada(), &world.path(), &strange, body)
        .await;
    assert_eq!(refused.issues(), ["content-length: invalid_type"]);
}

#[tokio::test]
async fn what_is_no_site_is_refused_by_the_word_for_what_is_wrong() {
    let world = World::new().await;
    for (body, expected) in [
        (&b"link"[..], "file: symlink"),
        (b"bomb", "file: too_large"),
        (b"junk", "file: unknown_format"),
    ] {
        let refused = world.deploy(&[], body).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        assert_eq!(refused.issues(), [expected]);
    }
    assert_eq!(world.kept.count(), 0);
    assert_eq!(world.audited("deployment.created").await, 0);
}

#[tokio::test]
async fn a_header_that_says_nothing_clear_is_never_taken_for_none() {
    let world = World::new().await;
    let long = "a".repeat(256);
    for branch in ["", "a b", "a:b", "é", "../x y", &long] {
        let refused = world
            .deploy(&[("x-core-deploy-branch", branch)], SITE)
            .await;
        assert_eq!(
            refused.issues(),
            ["x-core-deploy-branch: pattern"],
            "{branch}"
        );
    }
    let two = [("x-core-deploy-branch", "a"), ("x-core-deploy-branch", "b")];
    let refused = world.deploy(&two, SITE).await;
    assert_eq!(refused.issues(), ["x-core-deploy-branch: pattern"]);
    for key in ["", "a b", &long] {
        let refused = world.deploy(&[("idempotency-key", key)], SITE).await;
        assert_eq!(refused.issues(), ["Idempotency-Key: pattern"], "{key}");
    }
    let refused = world.deploy(&[("accept", "text/html")], SITE).await;
    assert_eq!(refused.status, StatusCode::NOT_ACCEPTABLE);
    assert_eq!(world.kept.count(), 0);
}
