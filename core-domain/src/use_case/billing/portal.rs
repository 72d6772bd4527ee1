//! The customer portal: sessions, and the changes that a customer makes there (contract: row 13).

use super::Billing;
use super::payment_method::{self, PAYMENT_METHOD};
use super::provider::{payments_error, provider_customer};
use crate::access::{BillingScope, CustomerScope, PortalScope, authorize_portal, unaudited};
use crate::billing::{PaymentMethod, PortalSecret, PortalSession, PortalSessionQuery};
use crate::iam::TokenHash;
use crate::kernel::{
    Context, CustomerId, Error, PlatformId, Record, Result, Secret, TOKEN_LENGTH, TextValue,
    Timestamp, new_uuid, permission, secret_token,
};
use crate::port::{Mode, OpKey, Store, UnitOfWork, transact};
use crate::use_case::shared::remove_first;
use serde::{Deserialize, Serialize};

/// A portal that is about to be opened for a customer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PendingPortal {
    customer_id: CustomerId,
    platform_id: PlatformId,
    return_url: String,
}

/// An open portal.
#[derive(Clone, Debug)]
pub struct OpenPortal {
    /// The id of the opening.
    pub id: String,
    /// The address for the browser of the customer. It is valid once.
    pub url: Secret,
    /// The address that the portal leads back to.
    pub return_url: String,
    /// Until when the address is valid.
    pub expires_at: Timestamp,
}

/// Checks that the portal of a platform's customer can be opened, in the first unit of work. Continue with [`open`].
///
/// # Errors
/// - `VALIDATION_ERROR` if the return address is not allowed.
/// - `NOT_FOUND` if the platform has no customer.
pub fn prepare(
    scope: &BillingScope<permission::BillingManage>,
    billing: &Billing,
    return_url: String,
) -> Result<PendingPortal> {
    billing.pages.ensure_return_url(&return_url)?;
    let customer = scope.existing_customer()?;
    Ok(PendingPortal {
        customer_id: customer.id.clone(),
        platform_id: scope.platform_id().clone(),
        return_url,
    })
}

/// Opens the portal: that of the payment provider or, if it has none, the pages of the suite.
///
/// # Errors
/// - `PAYMENT_PROVIDER_UNAVAILABLE` if the provider fails.
/// - `SERVICE_UNAVAILABLE` if the provider has no portal and the suite has no pages.
pub async fn open(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    pending: PendingPortal,
) -> Result<OpenPortal> {
    let (customer, now) = payment_method::load(store, &pending.customer_id).await?;
    let provider_id = provider_customer(cx, store, billing, &customer).await;
    let provider_id = provider_id.map_err(payments_error)?;
    let url = billing
        .payments
        .portal(&provider_id, &pending.return_url)
        .await;
    let url = match url.map_err(payments_error)? {
        Some(url) => url,
        None => {
            let secret = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
            let url = billing.pages.portal_url(&secret)?;
            let (secret, pending) = (&secret, &pending);
            transact(store, |uow, _| {
                Box::pin(async move {
                    let link = session(uow, pending, secret, PortalSecret::Link).await?;
                    unaudited::append(uow, link).await
                })
            })
            .await?;
            url
        }
    };
    Ok(OpenPortal {
        id: new_uuid(now, cx.entropy.as_ref()),
        url: Secret::new(url.as_str()),
        return_url: pending.return_url,
        expires_at: now.plus(PortalSecret::Link.lifetime()),
    })
}

/// Returns a session that begins now, which is not stored yet.
async fn session(
    uow: &mut dyn UnitOfWork,
    pending: &PendingPortal,
    secret: &str,
    kind: PortalSecret,
) -> Result<PortalSession> {
    let now = uow.now().await?;
    Ok(PortalSession {
        id: TokenHash::of(secret).as_text().to_owned(),
        secret: kind,
        customer_id: pending.customer_id.clone(),
        platform_id: pending.platform_id.clone(),
        return_url: pending.return_url.clone(),
        created_at: now,
        expires_at: now.plus(kind.lifetime()),
    })
}

/// Exchanges the secret of a link for that of a browser. A link is valid once.
///
/// # Errors
/// `NOT_FOUND` if there is no such link, or it was used or has expired.
pub async fn enter(cx: &Context, uow: &mut dyn UnitOfWork, link: &str) -> Result<Secret> {
    let scope = authorize_portal(uow, link, PortalSecret::Link).await;
    let scope = scope.map_err(|error| match error {
        Error::Unauthorized => Error::NotFound(PortalSession::KIND),
        error => error,
    })?;
    let seen = scope.session();
    let pending = PendingPortal {
        customer_id: seen.customer_id.clone(),
        platform_id: seen.platform_id.clone(),
        return_url: seen.return_url.clone(),
    };
    unaudited::remove(uow, seen).await?;
    let secret = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let browser = session(uow, &pending, &secret, PortalSecret::Browser).await?;
    unaudited::append(uow, browser).await?;
    Ok(Secret::new(secret.as_str()))
}

/// Returns the scope of a browser's session, in a unit of its own.
///
/// # Errors
/// `UNAUTHORIZED` if the session has ended.
pub async fn authorize_browser(store: &dyn Store, secret: &str) -> Result<PortalScope> {
    let mut uow = store.begin(Mode::Read).await?;
    let scope = authorize_portal(uow.as_mut(), secret, PortalSecret::Browser).await;
    uow.rollback().await;
    scope
}

/// A customer whose payment methods are changed in the portal.
type Manage = CustomerScope<permission::BillingManage>;

/// Attaches a test card to the customer. The first one becomes the default.
///
/// # Errors
/// Those of [`payment_method::attach`].
pub async fn add_card(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &Manage,
    card: &str,
) -> Result<PaymentMethod> {
    let nonce = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let key = OpKey::new("attach", &nonce);
    payment_method::attach(cx, store, billing, &customer.id, card, &key).await
}

/// Makes a payment method of the customer the default, which pays the open invoices at once.
///
/// # Errors
/// `NOT_FOUND` if the customer has no such payment method.
pub async fn choose_method(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &Manage,
    method: &str,
) -> Result<()> {
    let own = own_method(store, billing, customer, method).await?;
    let chosen = (own.id.as_str(), &own.card);
    payment_method::follow_default(cx, store, billing, customer, Some(chosen)).await
}

/// Detaches a payment method of the customer.
///
/// # Errors
/// - `NOT_FOUND` if the customer has no such payment method.
/// - `PAYMENT_METHOD_IN_USE` if it is the last one and a subscription has to be paid.
pub async fn remove_method(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &Manage,
    method: &str,
) -> Result<()> {
    own_method(store, billing, customer, method).await?;
    payment_method::detach_of(cx, store, billing, customer, method).await?;
    Ok(())
}

async fn own_method(
    store: &dyn Store,
    billing: &Billing,
    customer: &Manage,
    method: &str,
) -> Result<PaymentMethod> {
    let (customer, now) = payment_method::load(store, &customer.id).await?;
    let methods = payment_method::list(&customer, billing, now).await?;
    let own = methods.into_iter().find(|own| own.id == method);
    own.ok_or(Error::NotFound(PAYMENT_METHOD))
}

/// Removes at most `limit` sessions that have ended. Returns the number of removed sessions; 0 means that none is left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_ended_sessions(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let ended = PortalSessionQuery::ExpiredAt(uow.now().await?);
    remove_first::<PortalSession>(uow, &ended, limit).await
}
