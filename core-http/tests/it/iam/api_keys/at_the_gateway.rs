//! Keys at a gateway in the same process: resolution, caching, and invalidation of single keys.

use std::sync::{Arc, OnceLock};

use core_domain::gateway::Credential;
use core_domain::kernel::Secret;
use core_domain::kernel::{Effect, Effects, SuiteService};
use core_domain::port::{AnnouncingStore, CommitListener};
use core_http::gateway::{
    Authority, AuthorityError, Gateway, GatewayConfig, InProcess, Invalidate, Ports, Upstreams,
};
use core_http::iam::SessionAuthority;
use core_http::kernel::metrics::Metrics;
use core_http::kernel::testing::{PEER, SERVICE_KEY};
use core_http::kernel::{PeerAddr, empty_body};
use http::Request;
use serde_json::json;
use tower::ServiceExt;

use super::{DAY, DELETE, OrganizationOwner, ROTATE, UPDATE, key_id_of};
use crate::iam::EVE;
use crate::world::{Answer, World, iam_config, platform_path};

/// Invalidates the cache of a gateway after commits, as the suite does.
#[derive(Debug, Default)]
struct CacheInvalidator(OnceLock<Invalidate>);

impl CommitListener for CacheInvalidator {
    fn on_committed(&self, effects: &Effects) {
        let Some(gateway) = self.0.get() else { return };
        for effect in effects.iter() {
            match effect {
                Effect::ApiKeyChanged(id) => gateway.api_key(id),
                Effect::UserAccessChanged(id) => gateway.user(id),
                Effect::PlatformAccessChanged(id) => gateway.platform(id),
                _ => {}
            }
        }
    }
}

struct TestGateway {
    world: World,
    gateway: Gateway,
}

impl TestGateway {
    fn new() -> Self {
        let voiding = Arc::new(CacheInvalidator::default());
        let world = World::with(|app| {
            let listener: Arc<dyn CommitListener> = voiding.clone();
            app.store = Arc::new(AnnouncingStore::new(Arc::clone(&app.store), listener));
        });
        let app = &world.app;
        let ports = Ports {
            authority: Arc::new(SessionAuthority::new(Arc::clone(&app.store), &iam_config())),
            upstreams: Upstreams::new()
                .with(
                    SuiteService::Registry,
                    InProcess::service(world.registry.0.clone()),
                )
                .with(SuiteService::Iam, InProcess::service(world.iam.0.clone())),
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
            // Long enough that only invalidated keys are resolved again.
            session_cache: std::time::Duration::from_secs(5),
            ..GatewayConfig::default()
        };
        let gateway = Gateway::new(config, ports).unwrap();
        voiding.0.get_or_init(|| gateway.invalidate());
        Self { world, gateway }
    }

    async fn get(&self, secret: &str, path: &str) -> Answer {
        let request = Request::get(path)
            .header("host", "api.test")
            .header("x-api-key", secret)
            .extension(PeerAddr(PEER));
        let request = request.body(empty_body()).unwrap();
        Answer::of(self.gateway.clone().oneshot(request).await.unwrap()).await
    }

    /// Returns the status of a request with this key for a platform.
    async fn platform_status(&self, secret: &str, platform: &str) -> u16 {
        self.get(secret, &platform_path(platform, ""))
            .await
            .status
            .as_u16()
    }
}

#[tokio::test]
async fn changes_of_a_key_apply_from_the_next_request() {
    let front = TestGateway::new();
    let world = &front.world;
    let ada = OrganizationOwner::create_in(world).await;
    let eve = world.sign_up(EVE).await;
    let _ = world.join([&ada.person, &eve], &ada.org, "member").await;
    let (id, secret) = ada.key(world, json!({})).await;
    let (other, expiring) = ada.key(world, json!({ "expiresIn": DAY })).await;
    let of = json!({ "organizationId": ada.org });
    let eves = world.create_api_key(&eve.caller(), of).await.expect(200);
    let eves = eves.text("key");
    let shown = async |secret: &str| front.platform_status(secret, &ada.platform).await;
    for secret in [&*secret, &expiring, eves] {
        assert_eq!(shown(secret).await, 200);
    }
    for (enabled, status) in [(false, 401), (true, 200)] {
        let body = json!({ "keyId": id, "enabled": enabled });
        let _ = ada.post(world, UPDATE, body).await.expect(200);
        // A cached refusal has no key id and cannot be invalidated. It expires after at most a second.
        if enabled {
            front.gateway.invalidate().all();
        }
        assert_eq!(shown(&secret).await, status);
    }
    let rotate = json!({ "keyId": id, "overlap": 60 });
    let rotated = ada.post(world, ROTATE, rotate).await.expect(200);
    let successor = rotated.text("key");
    for (seconds, status) in [(59, 200), (1, 401)] {
        world.tick(seconds);
        assert_eq!(shown(&secret).await, status);
        assert_eq!(shown(successor).await, 200);
    }
    world.leave(&eve, &ada.org).await;
    assert_eq!(shown(eves).await, 401);
    world.set_platform_status(&ada.platform, "suspended").await;
    assert_eq!(shown(successor).await, 451);
    world.set_platform_status(&ada.platform, "active").await;
    assert_eq!(shown(successor).await, 200);
    let _ = ada
        .post(world, DELETE, json!({ "keyId": id }))
        .await
        .expect(200);
    assert_eq!(shown(successor).await, 401);
    assert_eq!(shown(&expiring).await, 200);
    world.tick(DAY);
    assert_eq!(shown(&expiring).await, 401);
    assert_ne!(id, other);
}

#[tokio::test]
async fn a_key_reaches_only_its_own_platform_within_its_scopes() {
    let front = TestGateway::new();
    let world = &front.world;
    let ada = OrganizationOwner::create_in(world).await;
    let foreign = world.create_platform("foreign").await;
    let (_, secret) = ada.key(world, json!({ "scopes": ["platform:read"] })).await;
    assert_eq!(front.platform_status(&secret, &ada.platform).await, 200);
    assert_eq!(front.platform_status(&secret, &foreign).await, 404);
    let entities = platform_path(&ada.platform, "/entities");
    let beyond = front.get(&secret, &entities).await;
    beyond.expect_error(403, "FORBIDDEN");
    let session = front.get(&secret, "/api/v1/iam/api/auth/get-session").await;
    assert!(session.expect(200).json.is_null());
    let sessions = front.get(&secret, "/api/v1/iam/api/sessions").await;
    sessions.expect_error(401, "UNAUTHORIZED");
    let wrong = front.get("core_x", &entities).await;
    wrong.expect_error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn the_authority_reports_key_owner_limit_suspension_and_expiry() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (id, secret) = ada
        .key(&world, json!({ "expiresIn": DAY, "requestsPerMinute": 7 }))
        .await;
    let authority = SessionAuthority::new(Arc::clone(&world.app.store), &iam_config());
    let resolve = |secret: &str| {
        let credential = Credential::ApiKey(Secret::new(secret));
        let authority = &authority;
        async move { authority.resolve(&credential).await }
    };
    let known = resolve(&secret).await.unwrap();
    assert_eq!(key_id_of(&known.caller), id);
    assert_eq!(known.caller.user_id().unwrap().as_str(), ada.person.user_id);
    assert_eq!(known.caller.person_id(), None);
    assert_eq!(known.caller.platform_id().unwrap().as_str(), ada.platform);
    assert_eq!(known.requests_per_minute, Some(7));
    assert!(!known.suspended);
    let ends = |at: &str| core_domain::kernel::Timestamp::parse_rfc3339(at);
    assert_eq!(known.expires_at, ends("2027-01-16T08:00:00.000Z"));
    world.set_platform_status(&ada.platform, "suspended").await;
    assert!(resolve(&secret).await.unwrap().suspended);
    let session = Credential::Bearer(Secret::new(&*ada.person.token));
    let session = authority.resolve(&session).await.unwrap();
    assert_eq!(session.requests_per_minute, None);
    for wrong in [secret.replace("core_", "core_a"), "core_".to_owned()] {
        let refused = resolve(&wrong).await.unwrap_err();
        assert_eq!(refused, AuthorityError::Refused);
    }
}
