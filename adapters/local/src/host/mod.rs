//! The host of sites and workers. It serves the deployments of pages projects and forwards requests to workers.
//!
//! The `Host` of a request selects the object: `http://{name}.localhost:PORT/`, or a hostname with a route to it. On
//! the host of [`SiteAddress::by_path`](crate::SiteAddress::by_path), if it is set, the path selects the object:
//! `{base}/{name}/`.

mod answer;
mod body;
mod lookup;
mod metered_body;
mod range;
mod sites;
mod target;

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use core_domain::cli::LogContent;
use core_domain::kernel::PlatformId;
use core_domain::port::TrafficMeter;
use http::uri::PathAndQuery;
use http::{HeaderMap, Request, Response, Uri, header};
use http_body::Body;

pub use self::body::SiteBody;
use self::metered_body::meter_body;
pub(crate) use self::range::Range;
pub(crate) use self::sites::Sites;
use self::sites::{internal_error, not_found};
use self::target::{Destination, Target};
use crate::logs::Logs;
use crate::suspension_gate::SuspensionGate;
use crate::workerd::{Workers, forwarded};

/// Serves the sites and workers of one local provider. A `tower` service without a socket; cheap to clone.
///
/// Each request sees exactly one deployment, even if another deployment goes live during the request. Requests to
/// workers and their responses are streamed.
#[derive(Clone, Debug)]
pub struct SiteHost {
    workers: Workers,
    sites: Sites,
    suspension_gate: SuspensionGate,
    logs: Arc<Logs>,
    traffic: Option<Arc<dyn TrafficMeter>>,
}

impl SiteHost {
    pub(crate) fn new(
        workers: Workers,
        logs: Arc<Logs>,
        traffic: Option<Arc<dyn TrafficMeter>>,
    ) -> Self {
        let sites = Sites::new(workers.stores().clone());
        let gate = workers.suspension_gate();
        Self {
            workers,
            sites,
            suspension_gate: gate,
            logs,
            traffic,
        }
    }

    /// Responds to a request, and adds it to the log of its object.
    async fn respond<B>(self, request: Request<B>) -> Response<SiteBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let started_at = Instant::now();
        let method = request.method().clone();
        let client = self
            .workers
            .client_address(request.extensions(), request.headers());
        let raw_path = request.uri().path().to_owned();
        let (target, response) = self.respond_from_target(request).await;
        if let Some(Target {
            destination,
            object,
            owner,
        }) = target
        {
            let duration = started_at.elapsed().as_millis();
            let line = LogContent::request(
                method.as_str(),
                destination.path_inside(&raw_path),
                response.status().as_u16(),
                u64::try_from(duration).unwrap_or(u64::MAX),
                client.map(|address| address.to_string()),
            );
            self.logs.push(&object, line);
            return self.meter(response, &owner);
        }
        response
    }

    /// Counts a response for the platform that owns the object. An owner that is not a platform id is not metered.
    fn meter(&self, response: Response<SiteBody>, owner: &str) -> Response<SiteBody> {
        match (&self.traffic, PlatformId::parse(owner)) {
            (Some(meter), Some(platform)) => {
                response.map(|body| meter_body(body, platform, Arc::clone(meter)))
            }
            _ => response,
        }
    }

    /// Responds to a request. Also returns the object that the request was for, if it exists.
    async fn respond_from_target<B>(
        &self,
        request: Request<B>,
    ) -> (Option<Target>, Response<SiteBody>)
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let host = host_of(request.uri(), request.headers());
        let path = request.uri().path().to_owned();
        let addresses = self.workers.addresses().clone();
        let found = self
            .workers
            .stores()
            .run(move |data| Target::find(data, host.as_deref(), &path, &addresses));
        let target = match found.await {
            Ok(Some(target)) => target,
            Ok(None) => return (None, not_found(request.method())),
            Err(error) => {
                let response = internal_error(error, request.uri(), request.method());
                return (None, response);
            }
        };
        let response = match self.suspension_gate.check(&target.owner).await {
            Ok(()) => self.respond_at(target.destination.clone(), request).await,
            Err(closed) => answer::access_refusal(closed, request.method()),
        };
        (Some(target), response)
    }

    async fn respond_at<B>(
        &self,
        destination: Destination,
        request: Request<B>,
    ) -> Response<SiteBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        match destination {
            Destination::Worker { name, path } => {
                self.forward_to_worker(&name, &path, request).await
            }
            Destination::Site(target) => {
                let (head, _) = request.into_parts();
                self.sites
                    .page(target, &head.method, &head.uri, &head.headers)
                    .await
            }
        }
    }

    async fn forward_to_worker<B>(
        &self,
        name: &str,
        path: &str,
        mut request: Request<B>,
    ) -> Response<SiteBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let method = request.method().clone();
        *request.uri_mut() = with_path(request.uri(), path);
        match self.workers.send(name, forwarded(request)).await {
            Ok(answer) => answer,
            Err(refusal) => {
                refusal.log(name);
                answer::plain_text(refusal.status(), format!("{refusal}\n"), &method)
            }
        }
    }
}

/// Replaces the path of a URI and keeps its query.
fn with_path(uri: &Uri, path: &str) -> Uri {
    let path = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    // The path is a part of a parsed path, so it always parses.
    parts.path_and_query = path.parse::<PathAndQuery>().ok().or(parts.path_and_query);
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

/// Returns the host of a request: from the request line if it has one, otherwise from the `Host` header.
fn host_of(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let header = || headers.get(header::HOST)?.to_str().ok();
    uri.host().or_else(header).map(str::to_owned)
}

impl<B> tower::Service<Request<B>> for SiteHost
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Response<SiteBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<SiteBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let host = self.clone();
        Box::pin(async move { Ok(host.respond(request).await) })
    }
}
