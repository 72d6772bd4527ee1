//! The endpoint that receives the events of the payment provider. Their signature authenticates them.

use std::sync::Arc;

use core_domain::access::PublicScope;
use core_domain::kernel::{Code, Error, Result};
use core_domain::use_case::billing::{Billing, inbox};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::kernel::{Cx, Endpoint, Output, RawInput, post, read_body, with};

/// Maximum size of an event in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// The header with the signature.
const SIGNATURE: &str = "Stripe-Signature";

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        post("/webhooks/stripe", "receiveStripeWebhook")
            .summary("Receives an event of Stripe.")
            .description(
                "The signature is checked over the bytes of the body, which has at most 256 KiB. \
                 The event is stored once, and a job applies the state of the changed object. So \
                 the order of events does not matter, and repeated ones change nothing.",
            )
            .success(&[StatusCode::OK])
            .required_header(
                SIGNATURE,
                json!({ "type": "string", "description": "The signature of the event." }),
            )
            .refuses(&[
                Code::ValidationError,
                Code::NotFound,
                Code::PayloadTooLarge,
                Code::ServiceUnavailable,
            ])
            .uploads(with(billing, receive)),
    ]
}

/// The response to an event.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReceivedResponse {
    /// Whether the event is stored: `true` in every response.
    received: bool,
    /// Whether the event was received before.
    duplicate: bool,
}

async fn receive(
    cx: &Cx,
    billing: Arc<Billing>,
    _: PublicScope,
    input: RawInput,
) -> Result<Output<ReceivedResponse>> {
    let signature = cx.header(SIGNATURE);
    let signature = signature.ok_or_else(|| Error::invalid(SIGNATURE, "required", "is missing"))?;
    let body = read_body(input.body, MAX_BYTES).await?;
    let store = cx.app.store.as_ref();
    let is_new = inbox::receive_webhook(cx, store, &billing, &body, signature).await?;
    Ok(Output::new(ReceivedResponse {
        received: true,
        duplicate: !is_new,
    }))
}
