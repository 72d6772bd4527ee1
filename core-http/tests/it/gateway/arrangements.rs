//! The same requests through a gateway to an in-process registry and to a registry over HTTP.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Secret, SuiteService};
use core_http::gateway::{
    Gateway, GatewayConfig, HttpUpstream, InProcess, Ports, ServiceTokens, Upstreams,
};
use core_http::iam::SessionAuthority;
use core_http::kernel::metrics::Metrics;
use core_http::kernel::testing::PEER;
use core_http::kernel::{Body, PeerAddr, empty_body};
use http::request::Builder;
use http::{Request, Response};
use serde_json::json;
use tower::ServiceExt;

use crate::world::server::{Server, options};
use crate::world::{Answer, PASSWORD, Person, SERVICE_KEY, World, iam_config, platform_path};

const DAY: u64 = 24 * 60 * 60;

/// A gateway in front of a registry, and a person with a platform.
struct Arrangement {
    world: World,
    gateway: Gateway,
    ada: Person,
    platform: String,
    _registry: Option<Server>,
}

impl Arrangement {
    async fn in_process() -> Self {
        let world = World::new();
        let upstreams = Upstreams::new();
        let registry = InProcess::service(world.registry.0.clone());
        Self::of(
            world,
            upstreams.with(SuiteService::Registry, registry),
            None,
        )
        .await
    }

    async fn over_http() -> Self {
        let world = World::new();
        let server = Server::start(world.registry.0.clone(), options()).await;
        let iam = InProcess::service(world.iam.0.clone());
        let key = Secret::new(SERVICE_KEY);
        let tokens = ServiceTokens::new(iam, &key, world.clock.clone()).unwrap();
        let registry = HttpUpstream::new(&format!("http://{}", server.address)).unwrap();
        let registry = registry.with_service_tokens(Arc::new(tokens), SuiteService::Registry);
        let upstreams = Upstreams::new().with(SuiteService::Registry, registry);
        Self::of(world, upstreams, Some(server)).await
    }

    async fn of(world: World, upstreams: Upstreams, server: Option<Server>) -> Self {
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
            session_cache: Duration::ZERO,
            ..GatewayConfig::default()
        };
        let gateway = Gateway::new(config, ports).unwrap();
        let ada = world.sign_up("ada@example.org").await;
        let set_up = world.set_up_organization(&ada, "engines").await.expect(201);
        Self {
            platform: set_up.text("platformId").to_owned(),
            world,
            gateway,
            ada,
            _registry: server,
        }
    }

    async fn hard_delete(&self) -> Answer {
        Answer::of(
            self.send(Request::post(platform_path(&self.platform, "/delete")))
                .await,
        )
        .await
    }

    async fn send(&self, request: Builder) -> Response<Body> {
        let request = request
            .header("host", "api.test")
            .header("authorization", format!("Bearer {}", self.ada.token))
            .extension(PeerAddr(PEER));
        let request = request.body(empty_body()).unwrap();
        self.gateway.clone().oneshot(request).await.unwrap()
    }
}

#[tokio::test]
async fn a_hard_delete_needs_a_step_up_and_is_audited_with_its_session_in_both_arrangements() {
    for arrangement in [
        Arrangement::in_process().await,
        Arrangement::over_http().await,
    ] {
        let (world, ada) = (&arrangement.world, &arrangement.ada);
        world.tick(6 * DAY);
        let refused = arrangement.hard_delete().await;
        refused.expect_error(403, "STEP_UP_REQUIRED");
        let proof = json!({ "password": PASSWORD });
        let path = "/api/auth/verify-password";
        let shown = world.iam.post(&ada.caller(), path, proof).await;
        let _ = shown.expect(200);
        let _ = arrangement.hard_delete().await.expect(200);
        let entry = world.audit("platform.hard_deleted").await.swap_remove(0);
        assert_eq!(entry.actor_id, ada.user_id);
        let credential = json!({ "type": "session", "id": ada.session_id });
        assert_eq!(entry.metadata.value()["credential"], credential);
    }
}

#[tokio::test]
async fn the_17th_event_stream_of_a_caller_is_429_in_both_arrangements() {
    for arrangement in [
        Arrangement::in_process().await,
        Arrangement::over_http().await,
    ] {
        let open = || arrangement.send(Request::get("/api/v1/platforms/events"));
        let mut streams = Vec::new();
        for _ in 0..16 {
            let response = open().await;
            assert_eq!(response.status(), 200);
            streams.push(response.into_body());
        }
        let refused = Answer::of(open().await)
            .await
            .expect_error(429, "RATE_LIMITED");
        assert_eq!(refused.header("retry-after"), "5");
        assert_eq!(refused.json["error"]["details"]["limit"], 16);
    }
}
