//! A service with endpoints made for these tests.

use std::net::SocketAddr;
use std::sync::Arc;

use core_domain::access::{PublicScope, SignedInScope};
use core_domain::gateway::RateClass;
use core_domain::kernel::Result;
use core_domain::port::UnitOfWork;
use core_domain::testing::ManualClock;
use core_http::kernel::{
    App, Body, Cx, Endpoint, Input, PeerAddr, Service, ServiceError, empty_body, get, post,
};
use http::{Method, Request, request};
use serde::Deserialize;

use crate::world::{Answer, Api, bare_app};

/// The address of a client that reaches the service without a gateway.
pub(super) const CLIENT: &str = "203.0.113.9:4711";

#[derive(Debug, Deserialize, schemars::JsonSchema)]
pub(super) struct Thing {
    #[expect(dead_code, reason = "only its schema is used")]
    name: Option<String>,
}

pub(super) async fn nothing(
    _: &Cx,
    _: PublicScope,
    _: &mut dyn UnitOfWork,
    _: Input,
) -> Result<()> {
    Ok(())
}

pub(super) async fn one(
    _: &Cx,
    _: PublicScope,
    _: &mut dyn UnitOfWork,
    _: Input<(String,)>,
) -> Result<()> {
    Ok(())
}

async fn get_own(
    _: &Cx,
    _: SignedInScope,
    _: &mut dyn UnitOfWork,
    _: Input<(String,)>,
) -> Result<()> {
    Ok(())
}

async fn make(
    _: &Cx,
    _: PublicScope,
    _: &mut dyn UnitOfWork,
    _: Input<(), (), Thing>,
) -> Result<()> {
    Ok(())
}

/// Builds a service with these endpoints over an app.
pub(super) fn service(app: App, rows: Vec<Endpoint>) -> std::result::Result<Service, ServiceError> {
    let builder = Service::builder("test", Arc::new(app), rows);
    builder.mount("/api/v1", "").build()
}

/// Creates a service with these endpoints over a bare app.
pub(super) fn of_rows(rows: Vec<Endpoint>) -> Api {
    Api(service(bare_app().0, rows).unwrap())
}

/// A service that clients reach without a gateway, and its clock.
pub(super) struct Direct {
    pub(super) api: Api,
    pub(super) clock: Arc<ManualClock>,
}

impl Direct {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut App)) -> Self {
        let (mut app, clock) = bare_app();
        change(&mut app);
        let rows = vec![
            get("/api/v1/things/{id}", "getThing").reads(one),
            get("/api/v1/own/{id}", "getOwn").reads(get_own),
            post("/api/v1/things", "makeThing").writes(make),
            post("/api/v1/tick", "tick").writes(nothing),
            post("/api/v1/guess", "guess")
                .rate(RateClass::Strict)
                .writes(nothing),
            get("/api/v1/onboarding/{id}", "getOnboarding").reads(one),
        ];
        let api = Api(service(app, rows).unwrap());
        Self { api, clock }
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        let request = from(CLIENT, Method::GET, path);
        self.send(request, empty_body()).await
    }

    pub(super) async fn post(&self, path: &str) -> Answer {
        let request = from(CLIENT, Method::POST, path);
        self.send(request, empty_body()).await
    }

    pub(super) async fn send(&self, request: request::Builder, body: Body) -> Answer {
        self.api.raw(request.body(body).unwrap()).await
    }
}

/// Returns a builder of a request over the network from this peer.
pub(super) fn from(peer: &str, method: Method, path: &str) -> request::Builder {
    let peer: SocketAddr = peer.parse().unwrap();
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "127.0.0.1:8082")
        .extension(PeerAddr(peer))
}
