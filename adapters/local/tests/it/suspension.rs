//! Tests of the sites and workers of suspended platforms.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use core_domain::port::{Infrastructure, ObjectRequest, ServeHostname, SuspensionUnknown};
use core_domain::registry::ResourceType;
use core_domain::testing::MockPlatformSuspensions;
use core_local::LocalConfig;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::host::{body, get, send};
use crate::hostnames::to;
use crate::socket::{exchange, request as http_request};
use crate::support::{OWNER, World, request, script, upload, workerd, world_of};

type Answer = Result<bool, SuspensionUnknown>;

/// Creates a world whose platforms have the suspension state that the test sets.
async fn world_with_state(
    state: &Arc<Mutex<Answer>>,
    change: impl FnOnce(&mut LocalConfig),
) -> World {
    let mut suspensions = MockPlatformSuspensions::new();
    let state = Arc::clone(state);
    suspensions
        .expect_is_suspended()
        .returning(move |_| *state.lock().unwrap());
    let world = world_of(|config| {
        config.suspensions = Some(Arc::new(suspensions));
        change(config);
    })
    .await;
    world.project("acme-site").await;
    world
        .deploy("acme-site", "d-1", &[("index.html", "front")])
        .await;
    let route = to("shop.example.org", ResourceType::Pages, "acme-site");
    world.infra.route_hostname(&route).await.unwrap();
    let serve = ServeHostname {
        hostname: "www.customer.example".to_owned(),
        target_dns: "shop.example.org".to_owned(),
        target: route.target.clone(),
        owner: OWNER.to_owned(),
        effect_key: "serve-1".to_owned(),
    };
    world.infra.serve_hostname(&serve).await.unwrap();
    world
}

/// Serves the world on a socket until the sender is dropped.
async fn serve(world: &World) -> (SocketAddr, oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async { drop(stopped.await) };
    let options = core_http::ServeOptions::default().with_drain(Duration::ZERO);
    let host = world.infra.site_host();
    tokio::spawn(core_http::serve(listener, host, shutdown, options));
    (address, stop)
}

#[tokio::test]
async fn suspended_site_responds_with_451_at_every_address() {
    let state = Arc::new(Mutex::new(Ok(false)));
    let world = world_with_state(&state, |_| {}).await;
    let (address, _stop) = serve(&world).await;
    for (suspended, status) in [(false, "200"), (true, "451"), (false, "200")] {
        *state.lock().unwrap() = Ok(suspended);
        for host in [
            "acme-site.localhost",
            "shop.example.org",
            "www.customer.example",
        ] {
            for line in ["GET /", "HEAD /"] {
                let answer = exchange(address, &http_request(line, host)).await;
                let expected = format!("HTTP/1.1 {status} ");
                assert!(answer.starts_with(&expected), "{line} {host}: {answer}");
                let shows_page = answer.ends_with("front");
                assert_eq!(shows_page, !suspended && line == "GET /", "{answer}");
            }
        }
    }
}

#[tokio::test]
async fn every_kind_of_request_to_a_suspended_site_responds_with_451() {
    let state = Arc::new(Mutex::new(Ok(false)));
    let world = world_with_state(&state, |_| {}).await;
    let url = "http://acme-site.localhost/";
    let tag = get(&world, url).await.headers()["etag"].clone();
    let tag = tag.to_str().unwrap();
    *state.lock().unwrap() = Ok(true);
    for (method, path, headers) in [
        ("GET", "", &[("if-none-match", tag)][..]),
        ("GET", "", &[("range", "bytes=0-1")]),
        ("GET", "missing", &[]),
        ("POST", "", &[]),
    ] {
        let answer = send(&world, method, &format!("{url}{path}"), headers).await;
        assert_eq!(answer.status(), 451, "{method} {path}");
        assert_eq!(answer.headers()["cache-control"], "no-store");
        assert_eq!(body(answer).await, "This site is suspended.\n");
    }
}

#[tokio::test]
async fn previews_of_a_suspended_site_respond_with_451() {
    let state = Arc::new(Mutex::new(Ok(false)));
    let world = world_with_state(&state, |_| {}).await;
    let preview = upload("acme-site", "next", "d-2", &[("index.html", "next")]);
    let preview = world.infra.deploy_site(preview).await.unwrap();
    let front = get(&world, &preview.url).await;
    assert_eq!(body(front).await, "next");
    *state.lock().unwrap() = Ok(true);
    assert_eq!(get(&world, &preview.url).await.status(), 451);
}

#[tokio::test]
async fn site_responds_with_503_while_its_suspension_state_is_unknown() {
    let state = Arc::new(Mutex::new(Err(SuspensionUnknown)));
    let world = world_with_state(&state, |_| {}).await;
    let answer = get(&world, "http://acme-site.localhost/").await;
    assert_eq!(answer.status(), 503);
    assert!(!body(answer).await.contains("front"));
}

#[tokio::test]
async fn object_without_a_platform_owner_is_served() {
    let state = Arc::new(Mutex::new(Ok(true)));
    let world = world_with_state(&state, |_| {}).await;
    let unowned = ObjectRequest {
        owner: "no platform".to_owned(),
        ..request(ResourceType::Pages, "acme-free")
    };
    world.infra.create(&unowned).await.unwrap();
    world
        .deploy("acme-free", "d-1", &[("index.html", "free")])
        .await;
    let answer = get(&world, "http://acme-free.localhost/").await;
    assert_eq!(body(answer).await, "free");
}

#[tokio::test]
async fn worker_of_a_suspended_platform_responds_with_451() {
    let state = Arc::new(Mutex::new(Ok(true)));
    let world = world_with_state(&state, |_| {}).await;
    let worker = request(ResourceType::Worker, "acme-api");
    world.infra.create(&worker).await.unwrap();
    for (suspended, status) in [(true, 451), (false, 503)] {
        *state.lock().unwrap() = Ok(suspended);
        // 503: this world has no `workerd`.
        let answer = get(&world, "http://acme-api.localhost/").await;
        assert_eq!(answer.status(), status);
    }
}

#[tokio::test]
async fn running_worker_loses_its_bindings_on_suspension() {
    let Some(workerd) = workerd() else { return };
    let state = Arc::new(Mutex::new(Ok(false)));
    // The request of the visitor is accepted; the platform is suspended before the script uses its binding.
    let suspends = Arc::new(AtomicBool::new(false));
    let mut suspensions = MockPlatformSuspensions::new();
    let flag = Arc::clone(&suspends);
    suspensions
        .expect_is_suspended()
        .returning(move |_| Ok(flag.swap(true, Ordering::Relaxed)));
    let world = world_with_state(&state, |config| {
        config.workerd = Some(workerd);
        config.suspensions = Some(Arc::new(suspensions));
    })
    .await;
    let text = "export default { async fetch(request, env) { \
        const page = await env.SITE.fetch('http://site/'); \
        return new Response(page.status + ' ' + await page.text()); } };";
    let site = json!([{ "name": "SITE", "type": "pages", "resource": "acme-site" }]);
    let worker = ObjectRequest {
        config: script(text, &site),
        ..request(ResourceType::Worker, "acme-api")
    };
    world.infra.create(&worker).await.unwrap();
    let answer = get(&world, "http://acme-api.localhost/").await;
    assert_eq!(body(answer).await, "451 This site is suspended.");
    let next = get(&world, "http://acme-api.localhost/").await;
    assert_eq!(next.status(), 451);
}
