//! Endpoints for payment methods. The payment provider stores them.

use std::sync::Arc;

use core_domain::access::{BillingScope, CustomerScope, SignedInScope};
use core_domain::billing::{PaymentMethod, PaymentProvider};
use core_domain::kernel::{Code, CustomerId, Email, Result, permission};
use core_domain::port::{OpKey, UnitOfWork};
use core_domain::use_case::billing::{Billing, customer, payment_method};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::platform::{NamesPlatform, OfCustomer, OfPlatform};
use super::spelling::prefixed;
use crate::kernel::{Cx, Data, DetachedCx, Endpoint, Input, Output, get, post, with};

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        get("/payment-methods", "listPaymentMethods")
            .alias(prefixed!("/payment-methods"))
            .summary("Lists the payment methods of a platform, the default first.")
            .description("The list is empty if the platform has no customer yet.")
            .refuses(&[
                Code::ValidationError,
                Code::NotFound,
                Code::PaymentProviderUnavailable,
            ])
            .plain_with_scope(with(billing, list)),
        post("/setup-intent", "createSetupIntent")
            .alias(prefixed!("/setup-intent"))
            .summary("Creates a setup intent, with which a browser adds a payment method.")
            .description(
                "The platform gets a customer if it has none. The client secret is for the \
                 browser of the customer alone. On the embedded provider, the browser adds a test \
                 card at `/pay/{clientSecret}`, within 24 hours and once.",
            )
            .success(&[StatusCode::CREATED])
            .secret_answer()
            .refuses(PROVIDER_CODES)
            .refuses(&[Code::NotFound])
            .writes_then(billing, begin_setup, finish_setup),
        post("/payment-methods/{id}/attach", "attachPaymentMethod")
            .summary("Attaches a payment method to a customer.")
            .description(
                "The first method of a customer becomes the default, which pays the open invoices \
                 at once.",
            )
            .refuses(PROVIDER_CODES)
            .refuses(&[Code::NotFound, Code::Conflict, Code::PaymentRequired])
            .writes_then(billing, begin_for_customer, finish_attachment),
        post("/payment-methods/{id}/detach", "detachPaymentMethod")
            .summary("Detaches a payment method, which can never be charged again.")
            .description(
                "If it was the default, the newest other one becomes the default. The last method \
                 of a subscription that has to be paid cannot be detached.",
            )
            .refuses(PROVIDER_CODES)
            .refuses(&[Code::NotFound, Code::Forbidden, Code::PaymentMethodInUse])
            .writes_then(billing, begin_detachment, finish_detachment),
        get("/payment-methods/{id}", "getPaymentMethod")
            .summary("Returns a payment method.")
            .description("Only operators see a method that is attached to no customer.")
            .refuses(&[
                Code::NotFound,
                Code::Forbidden,
                Code::PaymentProviderUnavailable,
            ])
            .plain_with_scope(with(billing, show)),
        post(
            "/payment-methods/{id}/set-default",
            "setDefaultPaymentMethod",
        )
        .summary("Makes a payment method the default of its customer.")
        .description("It pays the open invoices of the customer at once.")
        .refuses(PROVIDER_CODES)
        .refuses(&[Code::NotFound, Code::Conflict])
        .writes_then(billing, begin_for_customer, finish_default),
    ]
}

/// The codes of a request that changes something at the payment provider.
pub(super) const PROVIDER_CODES: &[Code] = &[
    Code::PaymentProviderUnavailable,
    Code::PaymentOutcomeUnknown,
    Code::ServiceUnavailable,
];

async fn list(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: BillingScope<permission::BillingRead>,
    _: Input<(), OfPlatform>,
) -> Result<Output<Data<PaymentMethod>>> {
    let now = cx.app.clock.now();
    let data = match scope.customer() {
        Some(customer) => payment_method::list(&customer, &billing, now).await?,
        None => Vec::new(),
    };
    Ok(Output::new(Data { data }))
}

async fn show(
    cx: &Cx,
    billing: Arc<Billing>,
    _: SignedInScope,
    input: Input<(String,)>,
) -> Result<Output<PaymentMethod>> {
    let store = cx.app.store.as_ref();
    let found = payment_method::find::<permission::BillingRead>(cx, store, &billing, &input.path.0);
    Ok(Output::new(found.await?.shown))
}

/// Request body that creates a setup intent.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CreateSetupIntent {
    /// The platform. Default: the one that the caller acts for.
    platform_id: Option<core_domain::kernel::PlatformId>,
    /// The address for invoices of a new customer. Default: that of the caller.
    billing_email: Option<Email>,
}

impl NamesPlatform for CreateSetupIntent {
    fn platform_id(&self) -> Option<&core_domain::kernel::PlatformId> {
        self.platform_id.as_ref()
    }
}

/// A setup intent, with which a browser adds a payment method.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SetupIntent {
    /// The id at the provider.
    id: String,
    /// The secret for the browser of the customer.
    client_secret: String,
    /// The status, for example `requires_payment_method`.
    status: String,
    /// The customer who gets the payment method.
    customer_id: CustomerId,
    /// The use of the method, always `off_session`: charges without the customer.
    usage: &'static str,
    /// The payment provider.
    provider: PaymentProvider,
    /// The key with which the browser calls the provider. `null` if the provider has none.
    publishable_key: Option<String>,
}

/// A change at the provider for a customer.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct MethodWork {
    customer_id: CustomerId,
    /// The method; empty for a new one.
    method_id: String,
    /// A random text that makes the key at the provider unique.
    nonce: String,
}

async fn begin_setup(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: BillingScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), CreateSetupIntent>,
) -> Result<MethodWork> {
    let email = input.body.billing_email;
    let customer = customer::ensure_of_platform(cx, &scope, uow, &billing, email).await?;
    work(cx, uow, &customer.id, String::new()).await
}

async fn work(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    customer: &CustomerId,
    method_id: String,
) -> Result<MethodWork> {
    Ok(MethodWork {
        customer_id: customer.clone(),
        method_id,
        nonce: core_domain::kernel::new_uuid(uow.now().await?, cx.entropy.as_ref()),
    })
}

async fn finish_setup(
    cx: DetachedCx,
    billing: Arc<Billing>,
    work: MethodWork,
) -> Result<Output<SetupIntent>> {
    let store = cx.app.store.as_ref();
    let customer = &work.customer_id;
    let key = OpKey::new("seti", &work.nonce);
    let intent = payment_method::create_setup_intent(&cx, store, &billing, customer, &key).await?;
    Ok(Output::new(SetupIntent {
        id: intent.id,
        client_secret: intent.client_secret.expose().to_owned(),
        status: intent.status,
        customer_id: work.customer_id,
        usage: "off_session",
        provider: billing.payments.provider(),
        publishable_key: billing.payments.publishable_key(),
    }))
}

async fn begin_for_customer(
    cx: &Cx,
    _: Arc<Billing>,
    scope: CustomerScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    input: Input<(String,), (), OfCustomer>,
) -> Result<MethodWork> {
    work(cx, uow, &scope.id, input.path.0).await
}

async fn finish_attachment(
    cx: DetachedCx,
    billing: Arc<Billing>,
    work: MethodWork,
) -> Result<Output<PaymentMethod>> {
    let store = cx.app.store.as_ref();
    let key = OpKey::new("attach", &work.nonce);
    let (customer, method) = (&work.customer_id, &work.method_id);
    let attached = payment_method::attach(&cx, store, &billing, customer, method, &key).await?;
    Ok(Output::new(attached))
}

async fn begin_detachment(
    _: &Cx,
    _: Arc<Billing>,
    _: SignedInScope,
    _: &mut dyn UnitOfWork,
    input: Input<(String,)>,
) -> Result<String> {
    Ok(input.path.0)
}

async fn finish_detachment(
    cx: DetachedCx,
    billing: Arc<Billing>,
    method: String,
) -> Result<Output<PaymentMethod>> {
    let store = cx.app.store.as_ref();
    let detached = payment_method::detach(&cx, store, &billing, &method).await?;
    Ok(Output::new(detached))
}

async fn finish_default(
    cx: DetachedCx,
    billing: Arc<Billing>,
    work: MethodWork,
) -> Result<Output<PaymentMethod>> {
    let store = cx.app.store.as_ref();
    let (customer, method) = (&work.customer_id, &work.method_id);
    let method = payment_method::set_default(&cx, store, &billing, customer, method).await?;
    Ok(Output::new(method))
}
