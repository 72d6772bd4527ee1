//! What scripts ask of their bindings, answered from the provider's own stores in the protocols `workerd` speaks.

mod condition;
mod d1;
mod d1_query;
mod kv;
mod queue;
mod r2;
mod r2_object;

use bytes::Bytes;
use core_domain::port::{Cause, ResourceRef};
use core_domain::registry::ResourceType;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use serde_json::Value;

use super::capnp::BINDING_HEADER;
use super::forward;
use super::pool::{Refusal, WeakWorkers};
use crate::error::LocalError;
use crate::host::{SiteBody, SiteHost};
use crate::manifest::Manifest;
use crate::names::title;
use crate::stores::Stores;
use crate::worker::WorkerBinding;

/// The bindings of one worker.
#[derive(Debug)]
pub(super) struct Bindings {
    owner: String,
    table: Vec<WorkerBinding>,
    stores: Stores,
    workers: WeakWorkers,
}

/// What a script is told that asks for something impossible.
#[derive(Debug)]
struct BindingError {
    status: StatusCode,
    message: String,
}

type Answer = Result<Response<SiteBody>, BindingError>;

impl Bindings {
    pub(super) const fn new(
        owner: String,
        table: Vec<WorkerBinding>,
        stores: Stores,
        workers: WeakWorkers,
    ) -> Self {
        Self {
            owner,
            table,
            stores,
            workers,
        }
    }

    /// Answers what the script asks of one of its bindings.
    pub(super) async fn answer(&self, mut request: Request<Incoming>) -> Response<SiteBody> {
        let name = request.headers_mut().remove(BINDING_HEADER);
        let named = |binding: &&WorkerBinding| name.as_ref().is_some_and(|n| *n == binding.name);
        let Some(binding) = self.table.iter().find(named) else {
            return BindingError::missing("there is no such binding").plain();
        };
        match binding.resource_type {
            ResourceType::D1 => {
                let answer = self.database(binding, request).await;
                answer.unwrap_or_else(|error| d1::refusal(&error))
            }
            ResourceType::R2 => {
                let answer = self.bucket(binding, request).await;
                answer.unwrap_or_else(|error| r2::refusal(&error))
            }
            _ => {
                let answer = self.other(binding, request).await;
                answer.unwrap_or_else(|error| error.plain())
            }
        }
    }

    async fn database(&self, binding: &WorkerBinding, request: Request<Incoming>) -> Answer {
        self.ensure_owned(binding).await?;
        let path = self.stores.database(&binding.resource).await?;
        d1::answer(&path, request).await
    }

    async fn bucket(&self, binding: &WorkerBinding, request: Request<Incoming>) -> Answer {
        self.ensure_owned(binding).await?;
        let bucket = self.stores.bucket(&binding.resource).await?;
        r2::answer(&bucket, request).await
    }

    async fn other(&self, binding: &WorkerBinding, request: Request<Incoming>) -> Answer {
        self.ensure_owned(binding).await?;
        let name = binding.resource.as_str();
        match binding.resource_type {
            ResourceType::Kv => {
                let now = self.stores.clock.now();
                kv::answer(&self.stores.kv(name).await?, now, request).await
            }
            ResourceType::Queue => queue::answer(&self.stores.queue(name).await?, request).await,
            ResourceType::Pages => {
                let host = SiteHost::new(self.workers.upgrade().ok_or(Refusal::Busy)?);
                Ok(host.site(name, &request).await)
            }
            _ => {
                let workers = self.workers.upgrade().ok_or(Refusal::Busy)?;
                Ok(workers.send(name, forward::request(request)).await?)
            }
        }
    }

    /// The object may have been removed since the worker was made, and its name may be somebody else's now.
    async fn ensure_owned(&self, binding: &WorkerBinding) -> Result<(), BindingError> {
        let target = ResourceRef {
            resource_type: binding.resource_type,
            name: binding.resource.clone(),
        };
        let (owner, what) = (self.owner.clone(), title(&target));
        let found = self.stores.run(move |data| {
            let found = Manifest::read(data, &target)?;
            Ok(found.is_some_and(|manifest| manifest.owner == owner))
        });
        if found.await? {
            return Ok(());
        }
        let message = format!("the binding leads to {what}, which does not exist any more");
        Err(BindingError::missing(message))
    }
}

impl BindingError {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, message }
    }

    fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    fn too_large() -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "it is too large")
    }

    fn unsupported(what: &str) -> Self {
        let message = format!("the local provider cannot do this: {what}");
        Self::new(StatusCode::NOT_IMPLEMENTED, message)
    }

    /// As text, and as the reason beside the status, which is what `workerd` shows of it.
    fn plain(self) -> Response<SiteBody> {
        let mut answer = Response::new(full(self.message.clone()));
        *answer.status_mut() = self.status;
        let is_plain = |c: &char| c.is_ascii_graphic() || *c == ' ';
        let reason: String = self.message.chars().filter(is_plain).collect();
        if let Ok(reason) = ReasonPhrase::try_from(reason) {
            answer.extensions_mut().insert(reason);
        }
        answer
    }
}

impl From<LocalError> for BindingError {
    fn from(error: LocalError) -> Self {
        match error {
            LocalError::Missing(_) => Self::missing(error.to_string()),
            LocalError::Invalid(message) => Self::bad(message),
            error => {
                let message = error.to_string();
                let cause = Cause::new(error);
                tracing::error!(%cause, "a worker's binding failed");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
            }
        }
    }
}

impl From<Refusal> for BindingError {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.status(), refusal.to_string())
    }
}

/// The whole body of a request.
async fn collected(body: Incoming, most: usize) -> Result<Bytes, BindingError> {
    match Limited::new(body, most).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(BindingError::too_large())
        }
        Err(_) => Err(BindingError::bad("the request broke off")),
    }
}

/// A value of one of the headers, as text.
fn header_text<'a>(headers: &'a http::HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn full(content: impl Into<Bytes>) -> SiteBody {
    let body = Full::new(content.into());
    body.map_err(|never| match never {}).boxed()
}

fn json(value: &Value) -> Response<SiteBody> {
    let mut answer = Response::new(full(value.to_string()));
    let kind = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}
