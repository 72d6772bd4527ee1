//! Access to every endpoint through a gateway, with the services in its process and with all of them over HTTP.

use std::sync::Arc;
use std::time::Duration;

use core_domain::gateway::RateKind;
use core_domain::kernel::{Role, Secret, SuiteService};
use core_http::gateway::{
    Authority, Gateway, GatewayConfig, HttpAuthority, HttpUpstream, InProcess, Ports,
    ServiceTokens, Upstreams,
};
use core_http::iam::SessionAuthority;
use core_http::kernel::metrics::Metrics;
use core_http::kernel::testing::PEER;
use core_http::kernel::{Body, PeerAddr, bytes_body, empty_body};
use http::Request;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::fixture::{Case, Fixture, TestRequest};
use super::samples::samples;
use crate::world::server::{Server, options};
use crate::world::{Answer, Api, Person, SERVICE_KEY, SITE, World, iam_config};

/// The service of an [`Api`].
fn name_of(api: &Api) -> SuiteService {
    api.0.name().parse().unwrap()
}

/// Returns a configuration whose limits are never reached.
fn config() -> GatewayConfig {
    let mut config = GatewayConfig {
        service_key: Some(Secret::new(SERVICE_KEY)),
        session_cache: Duration::ZERO,
        ..GatewayConfig::default()
    };
    for kind in RateKind::ALL {
        let minute = Duration::from_secs(60);
        config.rates.set(*kind, 1_000_000, minute).unwrap();
    }
    config
}

fn gateway(world: &World, authority: Arc<dyn Authority>, upstreams: Upstreams) -> Gateway {
    let ports = Ports {
        authority,
        upstreams,
        limiter: Arc::clone(&world.app.limiter),
        clock: Arc::clone(&world.app.clock),
        entropy: Arc::clone(&world.app.entropy),
        meter: None,
        store_check: None,
        metrics: Metrics::new(),
        tracer: None,
    };
    Gateway::new(config(), ports).unwrap()
}

/// A gateway in the process of the services, and one that calls them over HTTP.
struct Gateways {
    in_process: Gateway,
    over_http: Gateway,
    _servers: Vec<Server>,
}

impl Gateways {
    async fn of(world: &World) -> Self {
        let local = world.services().into_iter();
        let local = local.fold(Upstreams::new(), |upstreams, api| {
            upstreams.with(name_of(api), InProcess::service(api.0.clone()))
        });
        let sessions = SessionAuthority::new(Arc::clone(&world.app.store), &iam_config());
        let in_process = gateway(world, Arc::new(sessions), local);

        let (mut servers, mut iam) = (Vec::new(), String::new());
        let mut addresses = Vec::new();
        for api in world.services() {
            let server = Server::start(api.0.clone(), options()).await;
            let address = format!("http://{}", server.address);
            if name_of(api) == SuiteService::Iam {
                iam.clone_from(&address);
            }
            addresses.push((name_of(api), address));
            servers.push(server);
        }
        let upstream = |address: &str| HttpUpstream::new(address).unwrap();
        let key = Secret::new(SERVICE_KEY);
        let tokens = ServiceTokens::new(upstream(&iam), &key, world.clock.clone()).unwrap();
        let tokens = Arc::new(tokens);
        let authority = HttpAuthority::new(upstream(&iam), Arc::clone(&tokens));
        let addresses = addresses.iter();
        let remote = addresses.fold(Upstreams::new(), |upstreams, (name, address)| {
            let remote = upstream(address).with_service_tokens(Arc::clone(&tokens), *name);
            upstreams.with(*name, remote)
        });
        Self {
            in_process,
            over_http: gateway(world, Arc::new(authority), remote),
            _servers: servers,
        }
    }
}

/// The credentials of a matrix, by name.
struct Credentials(Vec<(&'static str, Option<(&'static str, String)>)>);

impl Credentials {
    /// Creates people with each role, an operator and an API key.
    async fn of(fixture: &Fixture) -> Self {
        let (world, platform) = (&fixture.world, &fixture.ids["platformId"]);
        let organization = match fixture.ids.get("orgId") {
            Some(organization) => organization.clone(),
            None => world.organization_of(platform).await,
        };
        let mut all = vec![
            ("nobody", None),
            ("garbage", bearer("garbage")),
            ("the service key", bearer(SERVICE_KEY)),
        ];
        let stranger = world.sign_up("stranger@example.org").await;
        all.push(("a stranger", bearer(&stranger.token)));
        for (name, email, role) in [
            ("a member", "member@example.org", Role::MEMBER),
            ("an admin", "admin@example.org", Role::ADMIN),
            ("an owner", "owner@example.org", Role::OWNER),
        ] {
            let person = world.sign_up(email).await;
            world.add_member(platform, &person, role.clone()).await;
            set_active(world, &person, &organization).await;
            all.push((name, bearer(&person.token)));
            if role == Role::OWNER {
                let key = world.organization_key(&person.token, &organization).await;
                all.push(("an API key", Some(("x-api-key", key))));
            }
        }
        let boss = world.sign_up("boss@example.org").await;
        let body = json!({ "ownerId": boss.user_id });
        let made = world.post_with_service_key("/api/core/bootstrap", &body);
        set_active(world, &boss, made.await.expect(201).text("orgId")).await;
        all.push(("an operator", bearer(&boss.token)));
        Self(all)
    }
}

fn bearer(token: &str) -> Option<(&'static str, String)> {
    Some(("authorization", format!("Bearer {token}")))
}

async fn set_active(world: &World, person: &Person, organization: &str) {
    let body = json!({ "organizationId": organization });
    let active = world.call_organization(person, "set-active", body).await;
    let _ = active.expect(200);
}

/// Returns the request of a case as a client sends it to a gateway.
fn request_of(
    case: &Case,
    ask: &TestRequest,
    credential: Option<&(&'static str, String)>,
) -> Request<Body> {
    let prefix = name_of(&case.service).prefixes().next().unwrap();
    let mut request = Request::builder()
        .method(ask.method.clone())
        .uri(format!("{prefix}{}", ask.uri()))
        .header("host", "api.test")
        .extension(PeerAddr(PEER));
    for (name, value) in &ask.headers {
        request = request.header(name, value);
    }
    if let Some((name, value)) = credential {
        request = request.header(*name, value);
    }
    let (kind, body) = match &ask.body {
        _ if ask.uploads => ("application/octet-stream", bytes_body(SITE)),
        Value::Null => return request.body(empty_body()).unwrap(),
        body => ("application/json", bytes_body(body.to_string())),
    };
    let has_kind = ask.headers.iter().any(|(name, _)| name == "content-type");
    if !has_kind {
        request = request.header("content-type", kind);
    }
    request.body(body).unwrap()
}

/// Returns the status and the error code of the response to a request.
async fn outcome(gateway: &Gateway, request: Request<Body>) -> (u16, String) {
    let response = gateway.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let is_stream = response
        .headers()
        .get("content-type")
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    // A stream has no end.
    if is_stream {
        return (status, "stream".to_owned());
    }
    let answer = Answer::of(response).await;
    let code = answer.json["error"]["code"].as_str().unwrap_or_default();
    (status, code.to_owned())
}

#[tokio::test]
async fn every_endpoint_treats_every_credential_equally_behind_a_gateway_in_process_and_over_http()
{
    let mut services = World::new().services().map(|api| api.0.name()).to_vec();
    services.sort_unstable();
    let (mut compared, mut statuses) = (0, std::collections::BTreeMap::<u16, usize>::new());
    for service in services {
        let mut fixture = Fixture::for_service(World::new(), service).await;
        let gateways = Gateways::of(&fixture.world).await;
        let credentials = Credentials::of(&fixture).await;
        // Creates the key that signs service tokens before the image is taken.
        for (_, credential) in &credentials.0 {
            let mut request = Request::get("/api/v1/platforms").extension(PeerAddr(PEER));
            if let Some((name, value)) = credential {
                request = request.header(*name, value);
            }
            let request = request.header("host", "api.test").body(empty_body());
            outcome(&gateways.over_http, request.unwrap()).await;
        }
        let image = fixture.world.image();
        let own = fixture.world.services().map(|api| api.0.clone());
        let own = own.iter().filter(|own| own.name() == service);
        let rows = own.flat_map(|own| own.endpoints());
        let operations: Vec<_> = rows.map(|row| row.operation()).collect();
        for sample in samples() {
            if !operations.contains(&sample.operation) {
                continue;
            }
            for (name, credential) in &credentials.0 {
                let mut outcomes = Vec::new();
                for gateway in [&gateways.in_process, &gateways.over_http] {
                    let Fixture { world, ids, person } = fixture;
                    let restored = Fixture {
                        world: world.with_image(&image),
                        ids,
                        person,
                    };
                    let case = Case::within(restored, sample);
                    let ask = case.valid_request().without_credentials();
                    let request = request_of(&case, &ask, credential.as_ref());
                    outcomes.push(outcome(gateway, request).await);
                    fixture = case.fixture;
                }
                let context = (sample.operation, name);
                assert_eq!(outcomes[0], outcomes[1], "{context:?}");
                compared += 1;
                *statuses.entry(outcomes[0].0).or_default() += 1;
            }
        }
    }
    assert!(compared > 1_500, "{compared}");
    // Each kind of outcome occurs.
    for status in [200, 201, 401, 403, 404] {
        assert!(statuses.contains_key(&status), "{statuses:?}");
    }
}
