//! The bindings of scripts. Requests in the protocols of `workerd` are served from the provider's own stores.

mod calls;
mod condition;
mod d1;
mod d1_guard;
mod d1_query;
mod d1_request;
mod d1_result;
#[cfg(test)]
mod d1_tests;
mod kv;
mod queue;
mod r2;
mod r2_object;
mod reply;

use std::sync::Arc;

use core_domain::port::ResourceRef;
use core_domain::registry::ResourceType;
use http::{Request, Response};
use hyper::body::Incoming;

use self::calls::{Call, Calls};
use self::reply::{BindingError, BindingResult, discard};
use super::capnp::BINDING_HEADER;
use super::forward;
use super::peers::Peers;
use crate::host::{SiteBody, Sites};
use crate::manifest::Manifest;
use crate::names::display_name;
use crate::stores::Stores;
use crate::suspension_gate::SuspensionGate;
use crate::worker::WorkerBinding;

/// The bindings of one worker.
#[derive(Debug)]
pub(super) struct Bindings {
    owner: String,
    bindings: Vec<WorkerBinding>,
    stores: Stores,
    sites: Sites,
    peers: Arc<dyn Peers>,
    gate: SuspensionGate,
    calls: Calls,
}

impl Bindings {
    pub(super) fn new(
        owner: String,
        table: Vec<WorkerBinding>,
        stores: Stores,
        peers: Arc<dyn Peers>,
        gate: SuspensionGate,
    ) -> Self {
        Self {
            owner,
            bindings: table,
            sites: Sites::new(stores.clone()),
            calls: Calls::new(stores.execution.limits),
            stores,
            peers,
            gate,
        }
    }

    /// Returns the maximum number of connections of the worker to its bindings.
    pub(super) const fn max_connections(&self) -> usize {
        self.calls.limits().connections
    }

    /// Handles a request of the script to one of its bindings.
    pub(super) async fn answer(&self, mut request: Request<Incoming>) -> Response<SiteBody> {
        let name = request.headers_mut().remove(BINDING_HEADER);
        let named = |binding: &&WorkerBinding| name.as_ref().is_some_and(|n| *n == binding.name);
        let Some(binding) = self.bindings.iter().find(named) else {
            discard(request.body_mut()).await;
            return BindingError::missing("the binding does not exist").plain();
        };
        // A worker that still runs when its platform is suspended loses its bindings too.
        if let Err(closed) = self.gate.check(&self.owner).await {
            let refusal = BindingError::new(closed.status(), closed.to_string());
            discard(request.body_mut()).await;
            return refusal.plain();
        }
        if binding.resource_type == ResourceType::Worker {
            // The called worker has its own limits. If workers call each other in a circle, a counted call would wait
            // for itself.
            let answer = self.worker(binding, request).await;
            return answer.unwrap_or_else(BindingError::plain);
        }
        let (head, mut body) = request.into_parts();
        let request = Request::from_parts(head, &mut body);
        let answer = match self.calls.acquire().await {
            Err(refused) => Err(refused.into()),
            Ok(call) => {
                let answer = self.call_store(binding, request, call.clone()).await;
                answer.map(|answer| answer.map(|body| call.attach_to_body(body)))
            }
        };
        let error = match answer {
            Ok(answer) => return answer,
            Err(error) => error,
        };
        discard(&mut body).await;
        match binding.resource_type {
            ResourceType::D1 => d1::error_response(&error),
            ResourceType::R2 => r2::refusal(&error),
            _ => error.plain(),
        }
    }

    async fn worker(&self, binding: &WorkerBinding, request: Request<Incoming>) -> BindingResult {
        self.ensure_owned(binding).await?;
        let request = forward::prepare_request(request);
        Ok(self.peers.send(&binding.resource, request).await?)
    }

    async fn call_store(
        &self,
        binding: &WorkerBinding,
        request: Request<&mut Incoming>,
        call: Call,
    ) -> BindingResult {
        self.ensure_owned(binding).await?;
        let name = binding.resource.as_str();
        match binding.resource_type {
            ResourceType::D1 => {
                let path = self.stores.database(name).await?;
                d1::answer(&path, &self.stores.execution, request, call).await
            }
            ResourceType::R2 => r2::answer(&self.stores.bucket(name).await?, request, call).await,
            ResourceType::Kv => {
                let now = self.stores.clock.now();
                kv::answer(&self.stores.kv(name).await?, now, request, call).await
            }
            ResourceType::Queue => {
                queue::answer(&self.stores.queue(name).await?, request, &call).await
            }
            ResourceType::Pages => Ok(self.sites.respond(name, &request).await),
            // [`Bindings::answer`] handles worker bindings earlier.
            ResourceType::Worker => Err(BindingError::missing(
                "a worker binding only supports fetch",
            )),
        }
    }

    /// Checks that the object still has the owner of the worker. It may have been deleted since the worker was created,
    /// and its name may now belong to another owner.
    async fn ensure_owned(&self, binding: &WorkerBinding) -> Result<(), BindingError> {
        let target = ResourceRef {
            resource_type: binding.resource_type,
            name: binding.resource.clone(),
        };
        let (owner, what) = (self.owner.clone(), display_name(&target));
        let found = self.stores.run(move |data| {
            let found = Manifest::read(data, &target)?;
            Ok(found.is_some_and(|manifest| manifest.owner == owner))
        });
        if found.await? {
            return Ok(());
        }
        let message = format!("the binding refers to {what}, which no longer exists");
        Err(BindingError::missing(message))
    }
}
