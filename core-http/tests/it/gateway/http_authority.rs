//! Credentials that a gateway resolves at an IAM over HTTP.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::gateway::Credential;
use core_domain::kernel::{PlatformId, Role, Secret};
use core_http::gateway::{
    Authority, AuthorityError, HttpAuthority, HttpUpstream, InProcess, ResolvedCredential,
    ServiceTokens, Upstream, UpstreamError,
};
use core_http::iam::SessionAuthority;
use core_http::kernel::{Body, bytes_body};
use http::{Request, Response};
use serde_json::json;

use crate::world::server::{Server, options};
use crate::world::{SERVICE_KEY, World, iam_config};

/// An IAM on a socket, and the authorities in this process and over HTTP.
struct Remote {
    world: World,
    local: SessionAuthority,
    over_http: HttpAuthority,
    _iam: Server,
}

impl Remote {
    async fn new() -> Self {
        let world = World::new();
        let iam = Server::start(world.iam.0.clone(), options()).await;
        let upstream = || HttpUpstream::new(&format!("http://{}", iam.address)).unwrap();
        let key = Secret::new(SERVICE_KEY);
        let tokens = ServiceTokens::new(upstream(), &key, world.clock.clone()).unwrap();
        Self {
            local: SessionAuthority::new(Arc::clone(&world.app.store), &iam_config()),
            over_http: HttpAuthority::new(upstream(), Arc::new(tokens)),
            world,
            _iam: iam,
        }
    }

    /// Asserts that both authorities resolve a credential equally, and returns the result.
    async fn resolve(&self, credential: &Credential) -> Result<ResolvedParts, AuthorityError> {
        let [local, remote]: [&dyn Authority; 2] = [&self.local, &self.over_http];
        let local = local.resolve(credential).await.map(ResolvedParts::from);
        let remote = remote.resolve(credential).await.map(ResolvedParts::from);
        assert_eq!(remote, local);
        remote
    }
}

/// The parts of a resolved credential that a gateway uses, in a form that can be compared.
#[derive(Debug, PartialEq)]
struct ResolvedParts {
    actor: String,
    session: Option<String>,
    user: Option<String>,
    organization: Option<String>,
    platform: Option<String>,
    roles: Option<String>,
    permissions: Vec<String>,
    operates: bool,
    suspended: bool,
    expires_at: Option<i64>,
    requests_per_minute: Option<u32>,
}

impl From<ResolvedCredential> for ResolvedParts {
    fn from(resolved: ResolvedCredential) -> Self {
        let caller = &resolved.caller;
        let membership = caller.membership();
        let text = |id: Option<&str>| id.map(str::to_owned);
        Self {
            actor: caller.actor_id().to_owned(),
            session: text(caller.session_id().map(|id| id.as_str())),
            user: text(caller.user_id().map(|id| id.as_str())),
            organization: text(membership.map(|own| own.organization_id.as_str())),
            platform: text(caller.platform_id().map(PlatformId::as_str)),
            roles: membership.map(|own| own.roles.to_string()),
            permissions: membership.map_or_else(Vec::new, |own| own.permissions.patterns()),
            operates: caller.is_operator(),
            suspended: resolved.suspended,
            expires_at: resolved.expires_at.map(|end| end.millis()),
            requests_per_minute: resolved.requests_per_minute,
        }
    }
}

fn bearer(token: &str) -> Credential {
    Credential::Bearer(Secret::new(token))
}

#[tokio::test]
async fn line_24_a_remote_iam_resolves_the_same_callers_as_one_in_this_process() {
    let remote = Remote::new().await;
    let world = &remote.world;
    let lone = world.sign_up("lone@example.org").await;
    let found = remote.resolve(&bearer(&lone.token)).await.unwrap();
    assert_eq!((found.organization, found.operates), (None, false));
    let cookie_value = lone.cookie.split_once('=').unwrap().1;
    let signed = percent_encoding::percent_decode_str(cookie_value);
    let signed = signed.decode_utf8().unwrap();
    let found = remote.resolve(&bearer(&signed)).await.unwrap();
    assert_eq!(found.session.as_deref(), Some(&*lone.session_id));

    let ada = world.sign_up("ada@example.org").await;
    let set_up = world.set_up_organization(&ada, "engines").await.expect(201);
    let (organization, platform) = (set_up.text("orgId"), set_up.text("platformId"));
    let found = remote.resolve(&bearer(&ada.token)).await.unwrap();
    assert_eq!(found.platform.as_deref(), Some(platform));
    assert_eq!(found.roles.as_deref(), Some(Role::OWNER.as_str()));
    // A denial leaves a set of permissions that no pattern describes.
    world
        .deny_permission(organization, &ada.user_id, "entity:write")
        .await;
    let found = remote.resolve(&bearer(&ada.token)).await.unwrap();
    assert!(!found.permissions.contains(&"entity:write".to_owned()));

    let key = world.organization_key(&ada.token, organization).await;
    let key = Credential::ApiKey(Secret::new(&key));
    let found = remote.resolve(&key).await.unwrap();
    assert_eq!(found.requests_per_minute, Some(600));

    let boss = world.sign_up("boss@example.org").await;
    let body = json!({ "ownerId": boss.user_id });
    let made = world
        .post_with_service_key("/api/core/bootstrap", &body)
        .await;
    let body = json!({ "organizationId": made.expect(201).text("orgId") });
    let _ = world
        .call_organization(&boss, "set-active", body)
        .await
        .expect(200);
    assert!(remote.resolve(&bearer(&boss.token)).await.unwrap().operates);

    world
        .change_lifecycle_as_operator(platform, "suspend")
        .await;
    for credential in [bearer(&ada.token), key] {
        assert!(remote.resolve(&credential).await.unwrap().suspended);
    }
}

#[tokio::test]
async fn line_24_unknown_and_ended_credentials_are_refused_by_a_remote_iam() {
    let remote = Remote::new().await;
    let ada = remote.world.sign_up("ada@example.org").await;
    let nobody = [
        bearer("unknown"),
        bearer("a.b.c"),
        Credential::ApiKey(Secret::new("core_unknown")),
    ];
    for credential in nobody {
        let refused = remote.resolve(&credential).await;
        assert_eq!(refused.unwrap_err(), AuthorityError::Refused);
    }
    remote
        .world
        .clock
        .advance(Duration::from_secs(31 * 24 * 60 * 60));
    let refused = remote.resolve(&bearer(&ada.token)).await;
    assert_eq!(refused.unwrap_err(), AuthorityError::Refused);
}

#[tokio::test]
async fn a_gateway_that_validates_a_key_at_a_remote_iam_does_not_use_up_its_limit() {
    let remote = Remote::new().await;
    let world = &remote.world;
    let ada = world.sign_up("ada@example.org").await;
    let set_up = world.set_up_organization(&ada, "engines").await.expect(201);
    let secret = world
        .organization_key(&ada.token, set_up.text("orgId"))
        .await;
    let key = Credential::ApiKey(Secret::new(&secret));
    for _ in 0..5 {
        remote.over_http.resolve(&key).await.unwrap();
    }
    // This service, which is not a gateway, is the first to use the key.
    let left = world.validate_key(&secret).await["rateLimit"]["remaining"].clone();
    assert_eq!(left, 599);
}

/// An IAM that responds to each request with a status and a body.
#[derive(Clone, Debug)]
struct BrokenIam(u16, &'static str);

#[async_trait]
impl Upstream for BrokenIam {
    async fn send(&self, _: Request<Body>) -> Result<Response<Body>, UpstreamError> {
        let response = Response::builder().status(self.0);
        Ok(response.body(bytes_body(self.1)).unwrap())
    }
}

#[tokio::test]
async fn line_24_a_remote_iam_that_fails_or_responds_with_nonsense_never_refuses_a_credential() {
    let world = World::new();
    let tokens = || {
        let iam = InProcess::service(world.iam.0.clone());
        let tokens = ServiceTokens::new(iam, &Secret::new(SERVICE_KEY), world.clock.clone());
        Arc::new(tokens.unwrap())
    };
    let credentials = [bearer("token"), Credential::ApiKey(Secret::new("core_key"))];
    for (status, body) in [
        (500, ""),
        (503, ""),
        (429, ""),
        (403, "{}"),
        (404, "{}"),
        (302, ""),
        (200, ""),
        (200, "not json"),
        (200, "{}"),
        (200, r#"{"valid":true}"#),
        (200, r#"{"valid":true,"keyId":""}"#),
    ] {
        let authority = HttpAuthority::new(BrokenIam(status, body), tokens());
        for credential in &credentials {
            let failed = authority.resolve(credential).await.unwrap_err();
            let unavailable = matches!(failed, AuthorityError::Unavailable(_));
            assert!(unavailable, "{status} {body} {credential:?}: {failed}");
        }
    }
    // Only a session can be refused with 401. For a key it means that the gateway itself is refused.
    let authority = HttpAuthority::new(BrokenIam(401, ""), tokens());
    let [session, key] = &credentials;
    assert_eq!(
        authority.resolve(session).await.unwrap_err(),
        AuthorityError::Refused
    );
    assert!(matches!(
        authority.resolve(key).await.unwrap_err(),
        AuthorityError::Unavailable(_)
    ));
}
