//! `POST /portal`: opens the page on which a customer manages plan, payment methods and invoices.

use std::sync::Arc;

use core_domain::access::BillingScope;
use core_domain::kernel::{Code, PlatformId, Result, Timestamp, permission};
use core_domain::port::UnitOfWork;
use core_domain::use_case::billing::Billing;
use core_domain::use_case::billing::portal::{self, PendingPortal};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::payment_method::PROVIDER_CODES;
use super::platform::NamesPlatform;
use super::spelling::prefixed;
use crate::kernel::{Cx, DetachedCx, Endpoint, Input, Output, post};

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        post("/portal", "openPortal")
            .alias(prefixed!("/portal"))
            .summary("Opens the portal, on which a customer manages plan, cards and invoices.")
            .description(
                "The response has an address for the browser of the customer, which is valid \
                 once and for 5 minutes. With Stripe it leads to Stripe's portal.",
            )
            .success(&[StatusCode::CREATED])
            .secret_answer()
            .refuses(PROVIDER_CODES)
            .refuses(&[Code::NotFound])
            .writes_then(billing, begin, finish),
    ]
}

/// Request body that opens the portal.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OpenPortal {
    /// The platform. Default: the one that the caller acts for.
    platform_id: Option<PlatformId>,
    /// The address that the portal leads back to: an https URL, or an http URL on loopback.
    #[schemars(
        length(min = 1, max = 2048),
        extend("format" = "uri"),
        example = &"https://app.example.org/billing"
    )]
    return_url: String,
}

impl NamesPlatform for OpenPortal {
    fn platform_id(&self) -> Option<&PlatformId> {
        self.platform_id.as_ref()
    }
}

/// An open portal.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PortalResponse {
    /// The id of the opening.
    id: String,
    /// The address for the browser of the customer. It is valid once.
    url: String,
    /// The address that the portal leads back to.
    return_url: String,
    /// Until when `url` is valid.
    expires_at: Timestamp,
}

async fn begin(
    _: &Cx,
    billing: Arc<Billing>,
    scope: BillingScope<permission::BillingManage>,
    _: &mut dyn UnitOfWork,
    input: Input<(), (), OpenPortal>,
) -> Result<PendingPortal> {
    portal::prepare(&scope, &billing, input.body.return_url)
}

async fn finish(
    cx: DetachedCx,
    billing: Arc<Billing>,
    pending: PendingPortal,
) -> Result<Output<PortalResponse>> {
    let store = cx.app.store.as_ref();
    let open = portal::open(&cx, store, &billing, pending).await?;
    Ok(Output::new(PortalResponse {
        id: open.id,
        url: open.url.expose().to_owned(),
        return_url: open.return_url,
        expires_at: open.expires_at,
    }))
}
