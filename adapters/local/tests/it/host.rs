//! Tests of the site host as a service: conditions, ranges, folders and missing pages.

use core_domain::port::Infrastructure;
use core_local::{SiteAddress, SiteBody};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::support::{World, upload, world, world_of};

const SITE: &str = "http://acme-site.localhost:8090";

/// The base address by path, in the world of [`world_by_path`].
pub(crate) const BY_PATH: &str = "http://sites.example.net";

/// Sends a request with these headers to the site host.
pub(crate) async fn send(
    world: &World,
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
) -> Response<SiteBody> {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    world.infra.site_host().oneshot(request).await.unwrap()
}

pub(crate) async fn get(world: &World, url: &str) -> Response<SiteBody> {
    send(world, "GET", url, &[]).await
}

/// Reads the whole body as text.
pub(crate) async fn body(answer: Response<SiteBody>) -> String {
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

async fn site() -> World {
    site_in(world().await).await
}

/// Creates a world in which one host also serves objects by path.
pub(crate) async fn world_by_path() -> World {
    world_of(|config| {
        config.sites = SiteAddress {
            by_path: Some(BY_PATH.to_owned()),
            ..config.sites.clone()
        };
    })
    .await
}

async fn site_in(world: World) -> World {
    world.project("acme-site").await;
    let files = [
        ("index.html", "<h1>front</h1>"),
        ("404.html", "<h1>lost</h1>"),
        ("css/site.css", "body{}"),
        ("docs/index.html", "<h1>docs</h1>"),
        ("a b/grüße.txt", "hello"),
        ("digits.txt", "0123456789"),
        ("empty.txt", ""),
    ];
    world.deploy("acme-site", "d-1", &files).await;
    world
}

#[tokio::test]
async fn pages_are_served_by_host_and_by_path() {
    let world = site_in(world_by_path().await).await;
    for base in [
        SITE,
        "http://ACME-SITE.localhost",
        "http://sites.example.net/acme-site",
        "http://SITES.example.net:8090/acme-site",
    ] {
        for (path, expected) in [
            ("/", "<h1>front</h1>"),
            ("/index.html", "<h1>front</h1>"),
            ("/css/site.css", "body{}"),
            ("/docs/", "<h1>docs</h1>"),
            ("/a%20b/gr%C3%BC%C3%9Fe.txt", "hello"),
            ("/docs/?query=1", "<h1>docs</h1>"),
        ] {
            let answer = get(&world, &format!("{base}{path}")).await;
            assert_eq!(answer.status(), StatusCode::OK, "{base}{path}");
            assert_eq!(body(answer).await, expected, "{base}{path}");
        }
    }
}

#[tokio::test]
async fn host_header_selects_the_site_of_a_relative_target() {
    let world = site().await;
    let answer = send(
        &world,
        "GET",
        "/css/site.css",
        &[("host", "acme-site.localhost:8090")],
    )
    .await;
    assert_eq!(body(answer).await, "body{}");
}

#[tokio::test]
async fn only_the_configured_host_serves_by_path() {
    let asked = [
        "http://127.0.0.1:8090/acme-site/css/site.css",
        "http://localhost/acme-site/css/site.css",
        "http://sites.example.net/acme-site/css/site.css",
        "http://iam.example.org/acme-site/css/site.css",
        "/acme-site/css/site.css",
    ];
    let off = site().await;
    for url in asked {
        assert_eq!(
            get(&off, url).await.status(),
            StatusCode::NOT_FOUND,
            "{url}"
        );
    }
    let on = site_in(world_by_path().await).await;
    for url in asked {
        let expected = match url.starts_with(BY_PATH) {
            true => StatusCode::OK,
            false => StatusCode::NOT_FOUND,
        };
        assert_eq!(get(&on, url).await.status(), expected, "{url}");
    }
}

#[tokio::test]
async fn response_headers_describe_the_file() {
    let world = site().await;
    let answer = get(&world, &format!("{SITE}/css/site.css")).await;
    let headers = answer.headers();
    assert_eq!(header(headers, "content-type"), "text/css; charset=utf-8");
    assert_eq!(header(headers, "content-length"), "6");
    assert_eq!(header(headers, "x-content-type-options"), "nosniff");
    assert_eq!(header(headers, "accept-ranges"), "bytes");
    assert_eq!(header(headers, "etag").len(), 66);
    assert!(header(headers, "cache-control").contains("must-revalidate"));
}

#[tokio::test]
async fn head_responds_like_get_without_a_body() {
    let world = site().await;
    for path in ["/", "/css/site.css", "/none", "/docs"] {
        let url = format!("{SITE}{path}");
        let (got, head) = (
            get(&world, &url).await,
            send(&world, "HEAD", &url, &[]).await,
        );
        assert_eq!(got.status(), head.status(), "{path}");
        assert_eq!(got.headers(), head.headers(), "{path}");
        assert_eq!(body(head).await, "", "{path}");
    }
    let head = send(
        &world,
        "HEAD",
        &format!("{SITE}/digits.txt"),
        &[("range", "bytes=0-1")],
    )
    .await;
    assert_eq!(head.status(), StatusCode::OK);
}

#[tokio::test]
async fn other_methods_are_refused_with_an_allow_header() {
    let world = site().await;
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"] {
        let answer = send(&world, method, SITE, &[]).await;
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{method}");
        assert_eq!(header(answer.headers(), "allow"), "GET, HEAD");
    }
}

#[tokio::test]
async fn folder_without_a_slash_redirects_to_the_path_with_one() {
    let world = site_in(world_by_path().await).await;
    for (url, location) in [
        (format!("{SITE}/docs"), "/docs/"),
        (format!("{SITE}/docs?x=1&y=%2F"), "/docs/?x=1&y=%2F"),
        (format!("{BY_PATH}/acme-site/docs"), "/acme-site/docs/"),
        (format!("{BY_PATH}/acme-site"), "/acme-site/"),
    ] {
        let answer = get(&world, &url).await;
        assert_eq!(answer.status(), StatusCode::PERMANENT_REDIRECT, "{url}");
        assert_eq!(header(answer.headers(), "location"), location);
    }
    for path in ["//docs", "/docs//", "/css", "/css/site.css/"] {
        let answer = get(&world, &format!("{SITE}{path}")).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn missing_path_shows_the_custom_page_with_status_404() {
    let world = site().await;
    let answer = get(&world, &format!("{SITE}/no/such/page")).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    assert_eq!(
        header(answer.headers(), "content-type"),
        "text/html; charset=utf-8"
    );
    assert_eq!(body(answer).await, "<h1>lost</h1>");
}

#[tokio::test]
async fn projects_without_deployment_and_unknown_projects_are_not_found() {
    let world = site_in(world_by_path().await).await;
    world.project("acme-empty").await;
    for url in [
        "http://acme-empty.localhost/",
        "http://acme-none.localhost/",
        "http://sites.example.net/acme-none/",
        "http://sites.example.net/acme-none",
        "http://sites.example.net/",
        "http://sites.example.net/..",
        "http://127.0.0.1/",
        "http://x.y.localhost/",
        "http://none--acme-site.localhost/",
        "http://--acme-site.localhost/",
    ] {
        assert_eq!(
            get(&world, url).await.status(),
            StatusCode::NOT_FOUND,
            "{url}"
        );
    }
}

#[tokio::test]
async fn unchanged_page_responds_with_304() {
    let world = site().await;
    let url = format!("{SITE}/digits.txt");
    let first = get(&world, &url).await;
    let tag = header(first.headers(), "etag").to_owned();
    for value in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
        let headers = [("if-none-match", value.as_str()), ("range", "bytes=0-1")];
        let answer = send(&world, "GET", &url, &headers).await;
        assert_eq!(answer.status(), StatusCode::NOT_MODIFIED, "{value}");
        assert_eq!(header(answer.headers(), "etag"), tag);
        assert_eq!(body(answer).await, "");
    }
    let answer = send(&world, "GET", &url, &[("if-none-match", "\"x\"")]).await;
    assert_eq!(answer.status(), StatusCode::OK);
    world
        .deploy("acme-site", "d-2", &[("digits.txt", "changed")])
        .await;
    let answer = send(&world, "GET", &url, &[("if-none-match", &tag)]).await;
    assert_eq!(body(answer).await, "changed");
}

#[tokio::test]
async fn ranges_of_a_file_can_be_requested() {
    let world = site().await;
    let url = format!("{SITE}/digits.txt");
    for (range, code, content_range, expected) in [
        ("bytes=2-4", 206, "bytes 2-4/10", "234"),
        ("bytes=7-", 206, "bytes 7-9/10", "789"),
        ("bytes=-3", 206, "bytes 7-9/10", "789"),
        ("bytes=0-99", 206, "bytes 0-9/10", "0123456789"),
        ("bytes=10-", 416, "bytes */10", ""),
        ("bytes=0-1,3-4", 200, "", "0123456789"),
        ("bytes=x", 200, "", "0123456789"),
    ] {
        let answer = send(&world, "GET", &url, &[("range", range)]).await;
        assert_eq!(answer.status(), code, "{range}");
        assert_eq!(header(answer.headers(), "content-range"), content_range);
        if code != 416 {
            let length = expected.len().to_string();
            assert_eq!(header(answer.headers(), "content-length"), length);
        }
        assert_eq!(body(answer).await, expected, "{range}");
    }
    let empty = format!("{SITE}/empty.txt");
    let answer = send(&world, "GET", &empty, &[("range", "bytes=0-")]).await;
    assert_eq!(answer.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(body(get(&world, &empty).await).await, "");
}

#[tokio::test]
async fn if_range_with_another_tag_returns_the_whole_file() {
    let world = site().await;
    let url = format!("{SITE}/digits.txt");
    let tag = header(get(&world, &url).await.headers(), "etag").to_owned();
    let weak = format!("W/{tag}");
    for (condition, code) in [
        (tag.as_str(), 206),
        (&weak, 200),
        ("\"other\"", 200),
        ("Sat, 21 Nov 2026 07:00:00 GMT", 200),
    ] {
        let headers = [("range", "bytes=0-1"), ("if-range", condition)];
        let answer = send(&world, "GET", &url, &headers).await;
        assert_eq!(answer.status(), code, "{condition}");
    }
}

#[tokio::test]
async fn large_file_is_streamed() {
    let world = world().await;
    world.project("acme-site").await;
    let large = "0123456789abcdef".repeat(64 * 1024);
    world
        .deploy("acme-site", "d-1", &[("large.txt", &large)])
        .await;
    let url = format!("{SITE}/large.txt");
    let mut answer = get(&world, &url).await.into_body();
    let (mut length, mut largest) = (0, 0);
    while let Some(frame) = answer.frame().await {
        let size = frame.unwrap().into_data().unwrap().len();
        length += size;
        largest = largest.max(size);
    }
    assert_eq!(length, large.len());
    assert!(largest <= 64 * 1024);
    let answer = send(&world, "GET", &url, &[("range", "bytes=100000-299999")]).await;
    assert_eq!(body(answer).await, large[100_000..300_000]);
}

#[tokio::test]
async fn running_response_is_not_affected_by_a_deployment() {
    let world = world().await;
    world.project("acme-site").await;
    let (old, new) = ("o".repeat(300_000), "n".repeat(300_000));
    world
        .deploy("acme-site", "d-1", &[("page.txt", &old)])
        .await;
    let mut answer = get(&world, &format!("{SITE}/page.txt")).await.into_body();
    let mut seen = answer
        .frame()
        .await
        .unwrap()
        .unwrap()
        .into_data()
        .unwrap()
        .to_vec();
    world
        .deploy("acme-site", "d-2", &[("page.txt", &new)])
        .await;
    seen.extend(answer.collect().await.unwrap().to_bytes());
    assert_eq!(seen, old.as_bytes());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_request_sees_exactly_one_deployment() {
    let world = world().await;
    world.project("acme-site").await;
    world
        .deploy("acme-site", "d-0", &[("index.html", "0")])
        .await;
    let infra = world.infra.clone();
    let writer = tokio::spawn(async move {
        for number in 1..30 {
            let text = number.to_string().repeat(number);
            let files = [("index.html", text.as_str())];
            let upload = upload("acme-site", "production", &format!("d-{number}"), &files);
            infra.deploy_site(upload).await.unwrap();
        }
    });
    let mut last = 0;
    while !writer.is_finished() {
        let answer = get(&world, &format!("{SITE}/")).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let text = body(answer).await;
        let number = (0..30).find(|n: &usize| text == n.to_string().repeat((*n).max(1)));
        assert!(number.unwrap() >= last, "{text} after {last}");
        last = number.unwrap();
    }
    writer.await.unwrap();
}

#[tokio::test]
async fn damaged_file_responds_with_500() {
    let world = site().await;
    let contents = world.folder.path().join("infra/pages/acme-site/content");
    for file in std::fs::read_dir(contents).unwrap() {
        std::fs::write(file.unwrap().path(), "something else than before").unwrap();
    }
    let answer = get(&world, &format!("{SITE}/digits.txt")).await;
    assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert!(!body(answer).await.contains("something"));
    world
        .deploy("acme-site", "d-2", &[("digits.txt", "0123456789")])
        .await;
    let answer = get(&world, &format!("{SITE}/digits.txt")).await;
    assert_eq!(
        body(answer).await,
        "0123456789",
        "a new deployment repairs the site"
    );
}
