//! Scopes on billing: one platform's billing, or one customer. Billing outlives platforms, so its records belong to a
//! customer and not to a platform.

use std::marker::PhantomData;
use std::ops::Deref;

use super::platform::permissions_on;
use super::records::covers_unowned;
use super::records::unowned_records;
use super::signed_in::ensure_not_suspended;
use crate::billing::{
    Customer, CustomerQuery, Invoice, InvoiceQuery, PortalSecret, PortalSession, Subscription,
    SubscriptionQuery,
};
use crate::iam::TokenHash;
use crate::kernel::{
    Context, CustomerId, Error, InvoiceId, PermissionType, PlatformId, Record, Result, Stored,
    SubscriptionId,
};
use crate::port::UnitOfWork;
use crate::registry::Platform;

/// The billing of one platform, on which the caller is authorized to do `G`. The platform may be deleted. Only
/// [`authorize_billing`] creates one.
#[derive(Clone, Debug)]
pub struct BillingScope<G> {
    platform_id: PlatformId,
    customer: Option<Stored<Customer>>,
    permission: PhantomData<fn() -> G>,
}

impl<G: PermissionType> BillingScope<G> {
    /// The id of the platform.
    #[must_use]
    pub const fn platform_id(&self) -> &PlatformId {
        &self.platform_id
    }

    /// Returns the scope on the customer of the platform. Returns `None` if there is none yet.
    #[must_use]
    pub fn customer(&self) -> Option<CustomerScope<G>> {
        self.customer.clone().map(CustomerScope::new)
    }

    /// Returns the scope on the customer of the platform.
    ///
    /// # Errors
    /// `NOT_FOUND` if the platform has no customer yet.
    pub fn existing_customer(&self) -> Result<CustomerScope<G>> {
        self.customer().ok_or(Error::NotFound(Customer::KIND))
    }

    /// Returns the scope on a customer that was created for the platform through this scope.
    pub(crate) fn with_customer(&self, customer: Stored<Customer>) -> CustomerScope<G> {
        debug_assert_eq!(customer.platform_id.as_ref(), Some(&self.platform_id));
        CustomerScope::new(customer)
    }
}

/// One customer, on which the caller is authorized to do `G`. Every query through the scope names the customer. Only
/// [`authorize_customer`] and its siblings create one.
#[derive(Clone, Debug)]
pub struct CustomerScope<G> {
    customer: Stored<Customer>,
    permission: PhantomData<fn() -> G>,
}

impl<G> Deref for CustomerScope<G> {
    type Target = Stored<Customer>;

    fn deref(&self) -> &Stored<Customer> {
        &self.customer
    }
}

impl<G> CustomerScope<G> {
    const fn new(customer: Stored<Customer>) -> Self {
        Self {
            customer,
            permission: PhantomData,
        }
    }

    /// Returns the invoice of the customer with this id.
    ///
    /// # Errors
    /// `NOT_FOUND` if the customer has no such invoice.
    pub async fn invoice(
        &self,
        uow: &mut dyn UnitOfWork,
        id: &InvoiceId,
    ) -> Result<Stored<Invoice>> {
        let one = InvoiceQuery::One(self.customer.id.clone(), id.clone());
        let found = unowned_records::<Invoice>(uow).first(&one).await?;
        found.ok_or(Error::NotFound(Invoice::KIND))
    }

    /// Returns the subscription of the customer with this id.
    ///
    /// # Errors
    /// `NOT_FOUND` if the customer has no such subscription.
    pub async fn subscription(
        &self,
        uow: &mut dyn UnitOfWork,
        id: &SubscriptionId,
    ) -> Result<Stored<Subscription>> {
        let one = SubscriptionQuery::One(self.customer.id.clone(), id.clone());
        let found = unowned_records::<Subscription>(uow).first(&one).await?;
        found.ok_or(Error::NotFound(Subscription::KIND))
    }
}

/// The billing of a platform for the holder of a portal session. Only [`authorize_portal`] creates one.
#[derive(Clone, Debug)]
pub struct PortalScope {
    session: Stored<PortalSession>,
    customer: Stored<Customer>,
}

impl PortalScope {
    /// The session.
    #[must_use]
    pub const fn session(&self) -> &Stored<PortalSession> {
        &self.session
    }

    /// Returns the scope on the billing of the platform. The creator of the session has `billing:manage`, which
    /// includes reading.
    #[must_use]
    pub fn billing<G: PermissionType>(&self) -> BillingScope<G> {
        BillingScope {
            platform_id: self.session.platform_id.clone(),
            customer: Some(self.customer.clone()),
            permission: PhantomData,
        }
    }

    /// Returns the scope on the customer.
    #[must_use]
    pub fn customer<G>(&self) -> CustomerScope<G> {
        CustomerScope::new(self.customer.clone())
    }
}

/// Authorizes the holder of the secret of a portal session.
///
/// # Errors
/// `UNAUTHORIZED` if there is no such session, it has ended, or the secret is of another kind.
pub async fn authorize_portal(
    uow: &mut dyn UnitOfWork,
    secret: &str,
    kind: PortalSecret,
) -> Result<PortalScope> {
    let now = uow.now().await?;
    let id = TokenHash::of(secret);
    let session = unowned_records::<PortalSession>(uow).find(&id).await?;
    let is_valid =
        |session: &Stored<PortalSession>| session.secret == kind && now < session.expires_at;
    let session = session.filter(is_valid).ok_or(Error::Unauthorized)?;
    let customer = unowned_records::<Customer>(uow)
        .find(&session.customer_id)
        .await?;
    Ok(PortalScope {
        session,
        customer: customer.ok_or(Error::Unauthorized)?,
    })
}

covers_unowned! {
    BillingScope<G>, for G, audited in |scope| Some(&scope.platform_id);
    CustomerScope<G>, for G, audited in |scope| scope.customer.platform_id.as_ref();
}

/// Authorizes the caller to do `G` with the billing of a platform: the named one or, without a name, the one that the
/// caller acts for. Operators reach every platform, also one that was removed permanently but has a customer.
///
/// # Errors
/// In this order:
/// - `UNAUTHORIZED` if the caller is anonymous.
/// - `VALIDATION_ERROR` if no platform is named and the caller acts for none.
/// - `NOT_FOUND` if the platform is missing or out of the caller's reach.
/// - `FORBIDDEN` if the caller lacks `G`.
/// - `PLATFORM_SUSPENDED` if the platform is suspended and the caller is not an operator.
pub async fn authorize_billing<G: PermissionType>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: Option<&PlatformId>,
) -> Result<BillingScope<G>> {
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let platform_id = platform.or(cx.caller.platform_id()).cloned();
    let platform_id = platform_id.ok_or_else(|| {
        let message = "Name the platform: you act for none.";
        Error::invalid("platformId", "required", message)
    })?;
    let platform = unowned_records::<Platform>(uow).find(&platform_id).await?;
    if !cx.caller.is_operator() {
        let platform = platform.as_deref().ok_or(MISSING_PLATFORM)?;
        ensure_allowed::<G>(cx, uow, platform, MISSING_PLATFORM).await?;
    }
    let of_platform = CustomerQuery::OfPlatform(platform_id.clone());
    let customer = unowned_records(uow).first(&of_platform).await?;
    if platform.is_none() && customer.is_none() {
        return Err(MISSING_PLATFORM);
    }
    Ok(BillingScope {
        platform_id,
        customer,
        permission: PhantomData,
    })
}

const MISSING_PLATFORM: Error = Error::NotFound(Platform::KIND);

/// Authorizes the caller to do `G` with a customer: with that of a platform by their permissions on it, with a person's
/// by being that person. Operators reach every customer. A customer of another tenant is reported as missing.
///
/// # Errors
/// - `UNAUTHORIZED` if the caller is anonymous.
/// - `NOT_FOUND` if the customer is missing or out of the caller's reach.
/// - `FORBIDDEN` if the caller lacks `G` on the customer's platform.
/// - `PLATFORM_SUSPENDED` if the customer's platform is suspended and the caller is not an operator.
pub async fn authorize_customer<G: PermissionType>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    customer: &CustomerId,
) -> Result<CustomerScope<G>> {
    authorize_payer(cx, uow, customer, Customer::KIND).await
}

/// Authorizes the caller to do `G` with the customer of a subscription; see [`authorize_customer`].
///
/// # Errors
/// Those of [`authorize_customer`]; `NOT_FOUND` if the subscription is missing or out of the caller's reach.
pub async fn authorize_subscription<G: PermissionType>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    subscription: &SubscriptionId,
) -> Result<CustomerScope<G>> {
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let found = unowned_records::<Subscription>(uow)
        .get(subscription)
        .await?;
    authorize_payer(cx, uow, &found.customer_id, Subscription::KIND).await
}

/// Authorizes the caller to do `G` with the customer of an invoice; see [`authorize_customer`].
///
/// # Errors
/// Those of [`authorize_customer`]; `NOT_FOUND` if the invoice is missing or out of the caller's reach.
pub async fn authorize_invoice<G: PermissionType>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    invoice: &InvoiceId,
) -> Result<CustomerScope<G>> {
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let found = unowned_records::<Invoice>(uow).get(invoice).await?;
    authorize_payer(cx, uow, &found.customer_id, Invoice::KIND).await
}

/// Authorizes the caller with a customer. `kind` is reported as missing if the customer is out of the caller's reach.
async fn authorize_payer<G: PermissionType>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    customer: &CustomerId,
    kind: &'static str,
) -> Result<CustomerScope<G>> {
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let customer = unowned_records::<Customer>(uow).find(customer).await?;
    let customer = customer.ok_or(Error::NotFound(kind))?;
    if cx.caller.is_operator() || is_own_customer(cx, &customer) {
        return Ok(CustomerScope::new(customer));
    }
    let platform = match &customer.platform_id {
        Some(platform) => unowned_records::<Platform>(uow).find(platform).await?,
        None => None,
    };
    let platform = platform.ok_or(Error::NotFound(kind))?;
    ensure_allowed::<G>(cx, uow, &platform, Error::NotFound(kind)).await?;
    Ok(CustomerScope::new(customer))
}

/// Returns whether the customer is the person who calls.
fn is_own_customer(cx: &Context, customer: &Customer) -> bool {
    customer.user_id.is_some() && customer.user_id.as_ref() == cx.caller.account_id()
}

/// Returns an error unless the caller, who is no operator, may do `G` on the platform.
async fn ensure_allowed<G: PermissionType>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &Platform,
    missing: Error,
) -> Result<()> {
    let permissions = permissions_on(cx, uow, platform).await?.ok_or(missing)?;
    if !permissions.allows(G::PERMISSION) {
        return Err(Error::Forbidden);
    }
    ensure_not_suspended(cx, uow, Some(&platform.id)).await
}
