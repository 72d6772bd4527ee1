//! The API reference of a service at `/docs`.

use core_domain::kernel::hex;
use http::Method;
use sha2::{Digest, Sha256};

use crate::world::reference::{assert_file, assert_page, attributes, files, read};
use crate::world::{Api, World};

#[tokio::test]
async fn every_service_shows_its_openapi_document_with_files_of_its_own() {
    let world = World::new();
    for api in world.services() {
        let page = api.raw(read(Method::GET, "/docs")).await.expect(200);
        let html = assert_page(&page);
        assert!(html.contains(&format!("API reference: {}", api.0.name())));
        assert_eq!(attributes(&html, "data-document"), ["openapi.json"]);
        assert_eq!(attributes(&html, "data-prefixes"), [""]);
        let document = api.raw(read(Method::GET, "/openapi.json")).await;
        assert_eq!(document.expect(200).bytes, api.0.openapi().unwrap());
        let files = files(&html);
        assert_eq!(files.len(), 4, "{files:?}");
        for path in files {
            let file = api.raw(read(Method::GET, &path)).await.expect(200);
            assert_file(&path, &file);
        }
    }
}

#[tokio::test]
async fn other_methods_and_paths_of_the_reference_are_404() {
    let api = World::new().stacks;
    for (method, path) in [
        (Method::POST, "/docs"),
        (Method::DELETE, "/docs/assets/docs.js"),
        (Method::GET, "/docs/"),
        (Method::GET, "/docs/assets/"),
        (Method::GET, "/docs/assets/README.md"),
        (Method::GET, "/docs/openapi/stacks.json"),
    ] {
        let answer = api.raw(read(method.clone(), path)).await;
        assert_eq!(answer.status, 404, "{method} {path}");
    }
}

#[tokio::test]
async fn a_head_request_has_the_headers_of_the_file_and_no_body() {
    let api = World::new().iam;
    for path in ["/docs", "/docs/assets/swagger-ui-bundle.js"] {
        let whole = api.raw(read(Method::GET, path)).await.expect(200);
        let head = api.raw(read(Method::HEAD, path)).await.expect(200);
        assert!(head.bytes.is_empty());
        let length = whole.bytes.len().to_string();
        assert_eq!(head.header("content-length"), length, "{path}");
        assert_eq!(head.header("etag"), whole.header("etag"), "{path}");
    }
}

#[tokio::test]
async fn a_cached_file_is_not_sent_again_and_an_outdated_link_is_not_cached() {
    let api = World::new().iam;
    let path = "/docs/assets/docs.js";
    let fresh = api.raw(read(Method::GET, path)).await.expect(200);
    assert_eq!(fresh.header("cache-control"), "no-cache");
    let outdated = api.raw(read(Method::GET, &format!("{path}?v=0"))).await;
    assert_eq!(outdated.expect(200).header("cache-control"), "no-cache");
    for tags in [
        fresh.header("etag"),
        "*",
        &format!("\"x\", W/{}", fresh.header("etag")),
    ] {
        let mut request = read(Method::GET, path);
        let tags = tags.parse().unwrap();
        request.headers_mut().insert("if-none-match", tags);
        let cached = api.raw(request).await.expect(304);
        assert!(cached.bytes.is_empty());
        assert_eq!(cached.header("etag"), fresh.header("etag"));
    }
}

/// The README says from which release the files come. They must not be edited here.
#[tokio::test]
async fn the_viewer_has_the_checksums_of_the_readme() {
    let readme = include_str!("../../../assets/swagger-ui/README.md");
    let api: Api = World::new().iam;
    for name in ["swagger-ui-bundle.js", "swagger-ui.css"] {
        let path = format!("/docs/assets/{name}");
        let file = api.raw(read(Method::GET, &path)).await.expect(200);
        let line = format!("| `{name}` | `{}` |", hex(&Sha256::digest(&file.bytes)));
        assert!(readme.contains(&line), "the README lacks the line {line}");
    }
}
