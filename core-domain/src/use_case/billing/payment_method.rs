//! Payment methods, which the provider stores. These use cases call the provider, so they open their own units of work.

use super::Billing;
use super::charge;
use super::provider::{payments_error, provider_customer};
use super::resume::resume_paused;
use super::subscription_state::open_invoices;
use crate::access::{
    CustomerScope, SystemScope, audited, authorize_customer, ensure_below, unowned_records,
};
use crate::billing::{
    Card, Customer, CustomerQuery, PaymentMethod, PaymentMethodType, Subscription,
    SubscriptionQuery, SubscriptionStatus,
};
use crate::kernel::{
    Code, Context, CustomerId, Error, InvoiceId, PermissionType, Result, Stored, Timestamp,
    permission,
};
use crate::port::{Mode, OpKey, PaymentsError, ProviderMethod, Store, UnitOfWork, transact};

/// The kind of record that a missing payment method is reported as.
pub(super) const PAYMENT_METHOD: &str = "payment method";

/// The largest number of payment methods of a customer.
const MAX_METHODS: u32 = 20;

const TOO_MANY_METHODS: &str = "The customer has 20 payment methods. Detach one first.";

/// The most subscriptions of a customer that are looked at.
const MAX_SUBSCRIPTIONS: u32 = 100;

/// Returns the payment methods of a customer, the default first, then the newest first.
///
/// # Errors
/// `PAYMENT_PROVIDER_UNAVAILABLE` if the provider fails.
pub async fn list(
    customer: &Customer,
    billing: &Billing,
    now: Timestamp,
) -> Result<Vec<PaymentMethod>> {
    let Some(provider_id) = &customer.provider_id else {
        return Ok(Vec::new());
    };
    let methods = billing.payments.methods(provider_id).await;
    let methods = methods.map_err(payments_error)?;
    let mut methods: Vec<_> = methods
        .into_iter()
        .map(|method| to_payment_method(method, Some(customer), now))
        .collect();
    methods.sort_by_key(|method| !method.is_default);
    Ok(methods)
}

/// Returns the default payment method of a customer.
///
/// # Errors
/// `NOT_FOUND` if there is none; `PAYMENT_PROVIDER_UNAVAILABLE` if the provider fails.
pub async fn default_of(
    customer: &Customer,
    billing: &Billing,
    now: Timestamp,
) -> Result<PaymentMethod> {
    let methods = list(customer, billing, now).await?;
    let default = methods.into_iter().find(|method| method.is_default);
    default.ok_or(Error::NotFound(PAYMENT_METHOD))
}

/// Returns a payment method with its customer, if the caller may do `G` with that customer. Only operators see a method
/// that is attached to no customer.
///
/// # Errors
/// - `NOT_FOUND` if the method is missing or out of the caller's reach.
/// - `FORBIDDEN` if the caller lacks `G` on the customer's platform.
/// - `PAYMENT_PROVIDER_UNAVAILABLE` if the provider fails.
pub async fn find<G: PermissionType>(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    id: &str,
) -> Result<FoundMethod<G>> {
    const MISSING: Error = Error::NotFound(PAYMENT_METHOD);
    let method = billing.payments.method(id).await.map_err(payments_error)?;
    let method = method.ok_or(MISSING)?;
    let mut uow = store.begin(Mode::Read).await?;
    let customer = find_customer::<G>(cx, uow.as_mut(), &method).await;
    let now = uow.now().await;
    uow.rollback().await;
    let customer = customer.map_err(|error| match error {
        Error::NotFound(_) => MISSING,
        error => error,
    })?;
    if customer.is_none() && !cx.caller.is_operator() {
        return Err(MISSING);
    }
    let own = customer.as_ref().map(|customer| &***customer);
    Ok(FoundMethod {
        shown: to_payment_method(method, own, now?),
        customer,
    })
}

/// A payment method, with the scope on its customer.
#[derive(Clone, Debug)]
pub struct FoundMethod<G> {
    /// The method.
    pub shown: PaymentMethod,
    /// The customer that it is attached to, if any.
    pub customer: Option<CustomerScope<G>>,
}

async fn find_customer<G: PermissionType>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    method: &ProviderMethod,
) -> Result<Option<CustomerScope<G>>> {
    let Some(provider_id) = &method.customer else {
        return Ok(None);
    };
    let with_id = CustomerQuery::WithProviderId(provider_id.clone());
    let customer = unowned_records::<Customer>(uow).first(&with_id).await?;
    let customer = customer.ok_or(Error::NotFound(PAYMENT_METHOD))?;
    authorize_customer(cx, uow, &customer.id).await.map(Some)
}

/// Attaches a payment method to a customer. The first one becomes the default, which is charged at once with every
/// invoice that is open. Does nothing if the method is attached to the customer.
///
/// # Errors
/// - `NOT_FOUND` if there is no such method.
/// - `CONFLICT` if it is attached to another customer, or was detached from its customer.
/// - `LIMIT_REACHED` if the customer has 20 payment methods.
/// - `PAYMENT_REQUIRED` if the issuer refuses the card.
/// - `PAYMENT_PROVIDER_UNAVAILABLE` and `PAYMENT_OUTCOME_UNKNOWN` if the provider fails.
pub async fn attach(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &CustomerId,
    id: &str,
    key: &OpKey,
) -> Result<PaymentMethod> {
    let (known, now) = load(store, customer).await?;
    let method = attach_to(cx, store, billing, &known, id, key).await?;
    let (mut known, _) = load(store, customer).await?;
    if known.default_payment_method_id.is_none() {
        let chosen = (method.id.as_str(), &method.card);
        known = make_default(cx, store, billing, &known, chosen).await?;
    }
    Ok(to_payment_method(method, Some(&known), now))
}

/// Attaches a payment method to a customer and makes it the default, without charging open invoices. Returns its id.
pub(super) async fn attach_only(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &CustomerId,
    id: &str,
    key: &OpKey,
) -> Result<String> {
    let (known, _) = load(store, customer).await?;
    let method = attach_to(cx, store, billing, &known, id, key).await?;
    let (known, _) = load(store, customer).await?;
    let chosen = (method.id.as_str(), &method.card);
    replace_default(cx, store, billing, &known, chosen).await?;
    Ok(method.id)
}

/// Returns the id of the default payment method of a customer, if there is one.
pub(super) async fn default_id(store: &dyn Store, customer: &CustomerId) -> Result<Option<String>> {
    let (customer, _) = load(store, customer).await?;
    Ok(customer.default_payment_method_id.clone())
}

/// Attaches a payment method to a customer at the provider.
async fn attach_to(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &Customer,
    id: &str,
    key: &OpKey,
) -> Result<ProviderMethod> {
    let payments = billing.payments.as_ref();
    let method = payments.method(id).await.map_err(payments_error)?;
    let method = method.ok_or(Error::NotFound(PAYMENT_METHOD))?;
    let provider_id = provider_customer(cx, store, billing, customer).await;
    let provider_id = provider_id.map_err(payments_error)?;
    match &method.customer {
        Some(other) if *other == provider_id => Ok(method),
        Some(_) => Err(Error::refused(
            Code::Conflict,
            "The payment method belongs to another customer.",
        )),
        None => {
            let known = payments
                .methods(&provider_id)
                .await
                .map_err(payments_error)?;
            let known = u64::try_from(known.len()).unwrap_or(u64::MAX);
            ensure_below(known, MAX_METHODS, TOO_MANY_METHODS)?;
            let attached = payments.attach(key, id, &provider_id).await;
            attached.map_err(|error| match error {
                // The method exists and has no customer, so it was detached before.
                PaymentsError::Invalid(_) => Error::refused(
                    Code::Conflict,
                    "The payment method was detached and cannot be attached again. Add the card anew.",
                ),
                error => payments_error(error),
            })
        }
    }
}

/// Makes an attached payment method the default of a customer, and charges the open invoices to it.
///
/// # Errors
/// - `CONFLICT` if the method is not attached to this customer.
/// - `PAYMENT_PROVIDER_UNAVAILABLE` and `PAYMENT_OUTCOME_UNKNOWN` if the provider fails.
pub async fn set_default(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &CustomerId,
    id: &str,
) -> Result<PaymentMethod> {
    let found = find::<permission::BillingManage>(cx, store, billing, id).await?;
    let own = found.customer.filter(|scope| scope.id == *customer);
    let Some(own) = own else {
        return Err(Error::refused(
            Code::Conflict,
            "The payment method is not attached to this customer.",
        ));
    };
    let chosen = (id, &found.shown.card);
    make_default(cx, store, billing, &own, chosen).await?;
    Ok(PaymentMethod {
        is_default: true,
        ..found.shown
    })
}

/// Makes a method the default, here and at the provider, charges every open invoice to it, and resumes paused
/// subscriptions. A charge that fails changes nothing about the method.
async fn make_default(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &Customer,
    chosen: (&str, &Card),
) -> Result<Stored<Customer>> {
    let stored = replace_default(cx, store, billing, customer, chosen).await?;
    let (method, _) = chosen;
    for invoice in open_of(store, &customer.id).await? {
        let charged = charge::charge(cx, store, billing, &invoice, method).await;
        // The invoice stays open, and its next attempt is planned. An unknown outcome is looked up later.
        drop(charged);
    }
    resume_paused(cx, store, billing, &customer.id, method).await?;
    Ok(stored)
}

/// Makes a method the default, here and at the provider.
async fn replace_default(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &Customer,
    chosen: (&str, &Card),
) -> Result<Stored<Customer>> {
    let (method, _) = chosen;
    if let Some(provider_id) = &customer.provider_id {
        let key = OpKey::new(provider_id, &format!("default:{method}"));
        let set = billing
            .payments
            .set_default(&key, provider_id, method)
            .await;
        set.map_err(payments_error)?;
    }
    store_default(cx, store, billing, &customer.id, Some(chosen)).await
}

/// Makes a method of the customer the default, as [`make_default`], or removes the default.
pub(super) async fn follow_default(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &Customer,
    chosen: Option<(&str, &Card)>,
) -> Result<()> {
    match chosen {
        Some(chosen) => make_default(cx, store, billing, customer, chosen).await?,
        None => store_default(cx, store, billing, &customer.id, None).await?,
    };
    Ok(())
}

async fn open_of(store: &dyn Store, customer: &CustomerId) -> Result<Vec<InvoiceId>> {
    let mut uow = store.begin(Mode::Read).await?;
    let open = open_invoices(uow.as_mut(), customer).await;
    uow.rollback().await;
    Ok(open?.iter().map(|invoice| invoice.id.clone()).collect())
}

/// Stores the default payment method of a customer, with its card.
pub(super) async fn store_default(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &CustomerId,
    chosen: Option<(&str, &Card)>,
) -> Result<Stored<Customer>> {
    transact(store, |uow, _| {
        Box::pin(async move {
            let seen = unowned_records::<Customer>(uow).get(customer).await?;
            let mut next = seen.edit();
            next.set_default_method(chosen, billing.now(uow).await?);
            let cx = &cx.without_conditions();
            let scope = &SystemScope::new();
            audited::replace(cx, scope, uow, &seen, next, "customer.updated").await
        })
    })
    .await
}

/// Detaches a payment method, which can never be charged again. If it was the default, the newest other one becomes it.
///
/// # Errors
/// - `NOT_FOUND` if there is no such method, or it is attached to no customer.
/// - `FORBIDDEN` if the caller lacks `billing:manage` on the customer's platform.
/// - `PAYMENT_METHOD_IN_USE` if it is the last one and a subscription has to be paid.
/// - `PAYMENT_PROVIDER_UNAVAILABLE` and `PAYMENT_OUTCOME_UNKNOWN` if the provider fails.
pub async fn detach(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    id: &str,
) -> Result<PaymentMethod> {
    let found = find::<permission::BillingManage>(cx, store, billing, id).await?;
    let customer = found.customer.ok_or(Error::NotFound(PAYMENT_METHOD))?;
    detach_of(cx, store, billing, &customer, id).await
}

/// Detaches a payment method of a customer.
pub(super) async fn detach_of(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &CustomerScope<permission::BillingManage>,
    id: &str,
) -> Result<PaymentMethod> {
    let (_, now) = load(store, &customer.id).await?;
    let methods = list(customer, billing, now).await?;
    let others: Vec<_> = methods.iter().filter(|method| method.id != id).collect();
    if others.is_empty() && must_be_paid(store, &customer.id).await? {
        return Err(Error::refused(
            Code::PaymentMethodInUse,
            "A subscription has to be paid with this payment method. Add another one first.",
        ));
    }
    let key = OpKey::new(id, "detach");
    let detached = billing
        .payments
        .detach(&key, id)
        .await
        .map_err(payments_error)?;
    if customer.default_payment_method_id.as_deref() == Some(id) {
        match others.first() {
            Some(next) => {
                let chosen = (next.id.as_str(), &next.card);
                replace_default(cx, store, billing, customer, chosen).await?;
            }
            None => {
                store_default(cx, store, billing, &customer.id, None).await?;
            }
        }
    }
    Ok(to_payment_method(detached, None, now))
}

/// Returns whether the customer has a subscription that will be charged.
async fn must_be_paid(store: &dyn Store, customer: &CustomerId) -> Result<bool> {
    let mut uow = store.begin(Mode::Read).await?;
    let all = SubscriptionQuery::Of(customer.clone());
    let all = unowned_records::<Subscription>(uow.as_mut())
        .list(&all, MAX_SUBSCRIPTIONS)
        .await;
    uow.rollback().await;
    let is_paid = |subscription: &Stored<Subscription>| {
        let unpaid = matches!(
            subscription.status,
            SubscriptionStatus::Trialing | SubscriptionStatus::Paused
        );
        subscription.status.is_live() && !unpaid && subscription.amount > 0
    };
    Ok(all?.iter().any(is_paid))
}

/// Returns a setup intent, with which a browser adds a payment method to the customer.
///
/// # Errors
/// `PAYMENT_PROVIDER_UNAVAILABLE` and `PAYMENT_OUTCOME_UNKNOWN` if the provider fails.
pub async fn create_setup_intent(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &CustomerId,
    key: &OpKey,
) -> Result<crate::port::ProviderSetupIntent> {
    let (customer, _) = load(store, customer).await?;
    let provider_id = provider_customer(cx, store, billing, &customer).await;
    let provider_id = provider_id.map_err(payments_error)?;
    let intent = billing
        .payments
        .create_setup_intent(key, &provider_id)
        .await;
    intent.map_err(payments_error)
}

/// Returns a customer and the time of the store.
pub(super) async fn load(
    store: &dyn Store,
    customer: &CustomerId,
) -> Result<(Stored<Customer>, Timestamp)> {
    let mut uow = store.begin(Mode::Read).await?;
    let found = unowned_records::<Customer>(uow.as_mut())
        .get(customer)
        .await;
    let now = uow.now().await;
    uow.rollback().await;
    Ok((found?, now?))
}

/// Returns a payment method as the interface shows it.
fn to_payment_method(
    method: ProviderMethod,
    customer: Option<&Customer>,
    now: Timestamp,
) -> PaymentMethod {
    let default = customer.and_then(|customer| customer.default_payment_method_id.as_ref());
    PaymentMethod {
        is_default: default == Some(&method.id),
        customer_id: customer.map(|customer| customer.id.clone()),
        kind: PaymentMethodType::Card,
        expired: method.card.has_expired(now),
        card: method.card,
        created_at: method.created_at,
        id: method.id,
    }
}
