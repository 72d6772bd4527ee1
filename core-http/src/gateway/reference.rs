//! The API reference of the gateway at `/docs`. It offers the OpenAPI documents of all services.
//!
//! The documents come from the services, in this process or over HTTP. They need no credential, as at the services
//! themselves.

use core_domain::gateway::Route;
use core_domain::kernel::SuiteService;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, COOKIE};
use http::request::Parts;
use http::{Method, Request};

use super::exchange::{Exchange, Outcome};
use super::proxy::Proxy;
use super::refusal::Refusal;
use crate::kernel::reference::{self, Document};
use crate::kernel::{Body, empty_body};

/// The path of the document at each service.
const AT_SERVICE: &str = "/openapi.json";

impl Proxy {
    /// Returns the page, one of its files, or the document of a service. Only `GET` and `HEAD` are supported.
    pub(super) async fn reference(&self, request: Request<Body>, exchange: &Exchange) -> Outcome {
        let (parts, _) = request.into_parts();
        let service = self.documented_service(parts.uri.path());
        if service.is_none() && !reference::is_path(parts.uri.path()) {
            return Err(Refusal::not_found());
        }
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return Err(Refusal::method_not_allowed("GET, HEAD"));
        }
        if let Some(service) = service {
            return self.document(service, parts, exchange).await;
        }
        let documents = || self.upstreams.names().map(document_of).collect();
        reference::answer(&parts, documents).ok_or_else(Refusal::not_found)
    }

    /// Returns the service whose document has this path at the gateway.
    fn documented_service(&self, path: &str) -> Option<SuiteService> {
        let mut names = self.upstreams.names();
        let found =
            names.find(|name| path == format!("{}{}", reference::PAGE, document_file(*name)));
        // Without the feature `docs` there is no page, and its documents do not exist either.
        found.filter(|_| reference::is_path(reference::PAGE))
    }

    /// Returns the document from the service. The service receives no credential and no body of the client.
    async fn document(
        &self,
        service: SuiteService,
        mut parts: Parts,
        exchange: &Exchange,
    ) -> Outcome {
        let route = Route {
            service,
            prefix: "",
            forwarded_path: AT_SERVICE.to_owned(),
        };
        // Without an identity, `forward` would show the session to IAM.
        for name in [AUTHORIZATION, CONTENT_LENGTH, COOKIE] {
            parts.headers.remove(name);
        }
        let request = Request::from_parts(parts, empty_body());
        self.forward(request, None, exchange, &route).await
    }
}

/// Returns the path of a document below the page.
fn document_file(service: SuiteService) -> String {
    format!("/openapi/{}.json", service.as_str())
}

/// Returns the document of a service as the page of the gateway refers to it.
fn document_of(service: SuiteService) -> Document {
    Document {
        service: service.as_str(),
        path: format!("docs{}", document_file(service)),
        prefixes: service.prefixes().collect(),
    }
}
