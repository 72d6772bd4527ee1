//! Signed webhooks.

use std::sync::Arc;

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use sha2::Sha256;

use crate::shared::SharedInner;
use crate::state::State;
use crate::state::endpoint::Endpoint;

/// An event as it is delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedEvent {
    /// The address of the receiver. Empty if the event is not for an endpoint.
    pub url: String,
    /// The body of the request: the event as JSON.
    pub body: Bytes,
    /// The value of the header `Stripe-Signature`.
    pub signature: String,
}

/// Returns the value of the header `Stripe-Signature`.
pub(crate) fn signature(secret: &str, body: &[u8], time: i64) -> String {
    // A key of HMAC can have any length.
    let digest = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map(|mut mac| {
        mac.update(format!("{time}.").as_bytes());
        mac.update(body);
        mac.finalize().into_bytes()
    });
    let digits: String = digest
        .into_iter()
        .flatten()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("t={time},v1={digits}")
}

/// Sends the events that were not yet sent to the registered endpoints. An event that the receiver does not accept is
/// not sent again; tests send it with [`crate::FakeStripe::redeliver`].
pub(crate) fn send_new(shared: &Arc<SharedInner>) {
    let deliveries = shared.lock().state.new_deliveries();
    if !deliveries.is_empty() {
        tokio::spawn(send(deliveries));
    }
}

/// Sends events in order.
pub(crate) async fn send(deliveries: Vec<SignedEvent>) {
    let client = Client::builder(TokioExecutor::new()).build_http();
    for delivery in deliveries {
        let request = Request::post(&delivery.url)
            .header("content-type", "application/json; charset=utf-8")
            .header("stripe-signature", &delivery.signature)
            .body(Full::new(delivery.body));
        if let Ok(request) = request {
            // A receiver that fails is part of some tests.
            let _ = client.request(request).await;
        }
    }
}

impl State {
    /// Returns the events that were not yet handed over, for each endpoint that wants them.
    fn new_deliveries(&mut self) -> Vec<SignedEvent> {
        let new = self.handed_over;
        self.handed_over = self.events.len();
        self.deliveries(new)
    }

    /// Returns the events from a position on, for each endpoint that wants them.
    pub(crate) fn deliveries(&self, from: usize) -> Vec<SignedEvent> {
        let events = self.events.iter().skip(from);
        let wanted = events.flat_map(|event| {
            let wants = |endpoint: &&Endpoint| {
                let mut kinds = endpoint.kinds.iter();
                kinds.any(|kind| kind == "*" || *kind == event.kind)
            };
            let endpoints = self.endpoints.iter().filter(wants);
            endpoints.map(|endpoint| self.sign_event(&event.render().to_string(), &endpoint.url))
        });
        wanted.collect()
    }

    pub(crate) fn sign_event(&self, body: &str, url: &str) -> SignedEvent {
        let body = Bytes::copy_from_slice(body.as_bytes());
        SignedEvent {
            url: url.to_owned(),
            signature: signature(&self.settings.webhook_secret, &body, self.clock.now()),
            body,
        }
    }
}
