//! The API reference of the gateway at `/docs`.

use std::sync::Arc;

use core_domain::gateway::strip_segment_prefix;
use core_domain::kernel::SuiteService;
use core_domain::kernel::{Caller, Secret};
use core_http::gateway::{Gateway, GatewayConfig, HttpUpstream, InProcess, Ports, Upstreams};
use core_http::iam::SessionAuthority;
use core_http::kernel::Body;
use core_http::kernel::metrics::Metrics;
use http::{Method, Request};
use tower::ServiceExt;

use super::world::{self, SESSION, anonymous};
use crate::world::reference::{assert_file, assert_page, attributes, files, read};
use crate::world::server::{Server, options};
use crate::world::{Answer, SERVICE_KEY, World, iam_config};

/// The services that the gateway of these tests has.
const SERVICES: [&str; 6] = [
    "iam",
    "registry",
    "provisioning",
    "cli",
    "billing",
    "stacks",
];

/// Returns a gateway in front of every service. The stack registry is reached over HTTP.
async fn gateway(world: &World) -> (Gateway, Server) {
    let server = Server::start(world.stacks.0.clone(), options()).await;
    let stacks = HttpUpstream::new(&format!("http://{}", server.address)).unwrap();
    let upstreams = Upstreams::new()
        .with(SuiteService::Iam, InProcess::service(world.iam.0.clone()))
        .with(
            SuiteService::Registry,
            InProcess::service(world.registry.0.clone()),
        )
        .with(
            SuiteService::Provisioning,
            InProcess::service(world.provisioning.0.clone()),
        )
        .with(SuiteService::Cli, InProcess::service(world.cli.0.clone()))
        .with(
            SuiteService::Billing,
            InProcess::service(world.billing.0.clone()),
        )
        .with(SuiteService::Stacks, stacks);
    let app = &world.app;
    let ports = Ports {
        authority: Arc::new(SessionAuthority::new(Arc::clone(&app.store), &iam_config())),
        upstreams,
        limiter: Arc::clone(&app.limiter),
        clock: Arc::clone(&app.clock),
        entropy: Arc::clone(&app.entropy),
        meter: None,
        store_check: None,
        metrics: Metrics::new(),
        tracer: None,
    };
    let config = GatewayConfig {
        service_key: Some(Secret::new(SERVICE_KEY)),
        ..GatewayConfig::default()
    };
    (Gateway::new(config, ports).unwrap(), server)
}

async fn send(gateway: &Gateway, request: Request<Body>) -> Answer {
    Answer::of(gateway.clone().oneshot(request).await.unwrap()).await
}

#[tokio::test]
async fn one_page_offers_the_documents_of_all_services_without_a_credential() {
    let world = World::new();
    let (gateway, _server) = gateway(&world).await;
    let get = |path: String| {
        let gateway = &gateway;
        async move { send(gateway, read(Method::GET, &path)).await.expect(200) }
    };
    let page = assert_page(&get("/docs".to_owned()).await);
    let links: Vec<_> = attributes(&page, "href")
        .into_iter()
        .filter_map(|link| link.strip_prefix("docs?service="))
        .collect();
    assert_eq!(links, SERVICES);
    for name in links {
        let page = assert_page(&get(format!("/docs?service={name}")).await);
        assert!(page.contains(&format!("API reference: {name}")));
        let document = format!("docs/openapi/{name}.json");
        assert_eq!(attributes(&page, "data-document"), [document.as_str()]);
        let described = get(format!("/{document}")).await;
        let api = world
            .services()
            .into_iter()
            .find(|api| api.0.name() == name);
        assert_eq!(described.bytes, api.unwrap().0.openapi().unwrap(), "{name}");
        assert_eq!(described.header("content-type"), "application/json");
    }
    let files = files(&page);
    assert_eq!(files.len(), 4);
    for path in files {
        assert_file(&path, &get(path.clone()).await);
    }
}

/// The page shows a path without a prefix of the service with the first prefix in front of it. The result must reach the
/// service.
#[tokio::test]
async fn the_shown_paths_of_a_document_exist_at_the_gateway() {
    let world = World::new();
    let (gateway, _server) = gateway(&world).await;
    for (name, path, shown, status) in [
        (
            "iam",
            "/api/auth/get-session",
            "/api/v1/iam/api/auth/get-session",
            200,
        ),
        ("registry", "/api/v1/platforms", "/api/v1/platforms", 200),
        (
            "registry",
            "/api/v1/lookup",
            "/api/v1/platforms/api/v1/lookup",
            400,
        ),
        (
            "provisioning",
            "/api/v1/provision/jobs",
            "/api/v1/provisioning/api/v1/provision/jobs",
            200,
        ),
        // A route that exists, but only for signed-in people.
        ("stacks", "/api/v1/stacks", "/api/v1/stacks", 401),
    ] {
        let page = send(
            &gateway,
            read(Method::GET, &format!("/docs?service={name}")),
        )
        .await;
        let html = assert_page(&page);
        let prefixes = attributes(&html, "data-prefixes")[0];
        let is_below = |prefix| strip_segment_prefix(path, prefix).is_some();
        let full = match prefixes.split(' ').any(is_below) {
            true => path.to_owned(),
            false => format!("{}{path}", prefixes.split(' ').next().unwrap()),
        };
        assert_eq!(full, shown);
        let mut request = read(Method::GET, shown);
        let key = format!("Bearer {SERVICE_KEY}").parse().unwrap();
        request.headers_mut().insert("authorization", key);
        let answer = send(&gateway, request).await;
        assert_eq!(answer.status, status, "{shown}: {}", answer.json);
    }
}

#[tokio::test]
async fn a_document_is_fetched_without_the_credential_and_the_body_of_the_client() {
    let world = world::World::new();
    let request = anonymous("/docs/openapi/iam.json")
        .header("authorization", &format!("Bearer {SESSION}"))
        .header("cookie", "better-auth.session_token=x")
        .header("x-api-key", "core_key")
        .header("content-length", "3");
    let _ = world.send(request.build()).await.expect(200);
    let seen = world.single_request();
    assert_eq!(
        (seen.service, &*seen.uri),
        (SuiteService::Iam, "/openapi.json")
    );
    assert!(matches!(seen.caller(), Caller::Anonymous));
    for name in ["authorization", "cookie", "x-api-key", "content-length"] {
        assert_eq!(seen.header(name), "", "{name}");
    }
    assert_eq!(world.iam.lookups(), 0);
}

#[tokio::test]
async fn other_paths_below_docs_are_404_and_other_methods_405() {
    let world = world::World::new();
    for path in [
        "/docs/",
        "/docs/openapi/",
        "/docs/openapi/billing.json",
        "/docs/openapi/iam.json/",
        "/docs/assets/README.md",
    ] {
        let answer = world.send(anonymous(path).build()).await;
        answer.expect_error(404, "NOT_FOUND");
    }
    for path in ["/docs", "/docs/openapi/iam.json", "/docs/assets/docs.js"] {
        let request = anonymous(path).method(Method::POST).build();
        let refused = world.send(request).await;
        let refused = refused.expect_error(405, "METHOD_NOT_ALLOWED");
        assert_eq!(refused.header("allow"), "GET, HEAD");
    }
    assert!(world.received_requests().is_empty());
}

#[tokio::test]
async fn the_page_keeps_its_policy_and_has_the_headers_of_every_response() {
    let world = world::World::new();
    let page = world.send(anonymous("/docs").build()).await.expect(200);
    let html = assert_page(&page);
    assert!(!html.contains("billing"), "the gateway has no such service");
    assert_eq!(page.header("x-frame-options"), "DENY");
    assert_ne!(page.header("x-request-id"), "");
    assert_ne!(page.header("ratelimit"), "");
}
