//! Endpoints for customers.

use std::sync::Arc;

use core_domain::access::{CustomerScope, SignedInScope};
use core_domain::billing::{CreateCustomer, Customer, PaymentMethod, UpdateCustomer};
use core_domain::kernel::{Code, CustomerId, Result, Stored, permission};
use core_domain::port::UnitOfWork;
use core_domain::use_case::billing::{Billing, customer, payment_method, subscription};
use http::StatusCode;

use super::view::SubscriptionView;
use crate::kernel::{Cx, Data, Endpoint, Input, Output, get, patch, post, with};

const ONE: &str = "/customers/{id}";

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        post("/customers", "createCustomer")
            .summary("Creates a customer.")
            .description(
                "Without `userId`, the customer pays for a platform: the named one, or the one \
                 that the caller acts for. Operators can create a customer of neither. A platform \
                 and a user have at most one customer; addresses can repeat.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::CustomerExists, Code::NotFound, Code::Forbidden])
            .writes(with(billing, create)),
        get(ONE, "getCustomer")
            .summary("Returns a customer.")
            .description("The balance and the credits are those of the journal.")
            .refuses(&[Code::NotFound])
            .reads_once(show),
        patch(ONE, "updateCustomer")
            .summary("Updates a customer.")
            .description("Invoices that are final keep the address that they have.")
            .refuses(&[Code::NotFound])
            .if_match()
            .writes(with(billing, update)),
        get("/customers/{id}/subscriptions", "listCustomerSubscriptions")
            .summary("Lists the subscriptions of a customer, newest first.")
            .description("The list includes those that have ended.")
            .refuses(&[Code::NotFound])
            .reads(subscriptions),
        get(
            "/customers/{id}/payment-methods",
            "listCustomerPaymentMethods",
        )
        .summary("Lists the payment methods of a customer, the default first.")
        .description("The payment provider is asked.")
        .refuses(&[Code::NotFound, Code::PaymentProviderUnavailable])
        .plain_with_scope(with(billing, methods)),
        get(
            "/customers/{id}/payment-methods/default",
            "getDefaultPaymentMethod",
        )
        .summary("Returns the default payment method of a customer.")
        .description("It is charged unless a subscription has its own.")
        .refuses(&[Code::NotFound, Code::PaymentProviderUnavailable])
        .plain_with_scope(with(billing, default_method)),
    ]
}

type Reads = CustomerScope<permission::BillingRead>;
type Manages = CustomerScope<permission::BillingManage>;

async fn create(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: SignedInScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), CreateCustomer>,
) -> Result<Stored<Customer>> {
    customer::create(cx, &scope, uow, &billing, input.body).await
}

async fn show(
    _: &Cx,
    scope: Reads,
    _: &mut dyn UnitOfWork,
    _: Input<(CustomerId,)>,
) -> Result<Stored<Customer>> {
    Ok(customer::get(&scope))
}

async fn update(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: Manages,
    uow: &mut dyn UnitOfWork,
    input: Input<(CustomerId,), (), UpdateCustomer>,
) -> Result<Stored<Customer>> {
    customer::update(cx, &scope, uow, &billing, input.body).await
}

async fn subscriptions(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    _: Input<(CustomerId,)>,
) -> Result<Output<Data<SubscriptionView>>> {
    let found = subscription::list(&scope, uow).await?;
    let data = found.iter().map(SubscriptionView::of).collect();
    Ok(Output::new(Data { data }))
}

async fn methods(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: Reads,
    _: Input<(CustomerId,)>,
) -> Result<Output<Data<PaymentMethod>>> {
    let now = cx.app.clock.now();
    let data = payment_method::list(&scope, &billing, now).await?;
    Ok(Output::new(Data { data }))
}

async fn default_method(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: Reads,
    _: Input<(CustomerId,)>,
) -> Result<Output<PaymentMethod>> {
    let now = cx.app.clock.now();
    let found = payment_method::default_of(&scope, &billing, now).await?;
    Ok(Output::new(found))
}
