//! Customers: creates, reads and updates them.

use super::Billing;
use crate::access::{
    BillingScope, Covers, CustomerScope, SignedInScope, audited, authorize_billing, unowned_records,
};
use crate::billing::{CreateCustomer, Customer, CustomerQuery, UpdateCustomer};
use crate::kernel::{
    Code, Context, CustomerId, Email, Error, Result, Stored, Timestamp, Unowned, UserId, permission,
};
use crate::port::UnitOfWork;
use crate::use_case::iam;

/// The number of ids that are tried until one has a free prefix of invoice numbers.
const MAX_IDS: u32 = 8;

/// Creates a customer: that of a platform, that of a user or, for operators, one of neither. A tenant creates only the
/// customer of its own platform.
///
/// # Errors
/// - `CUSTOMER_EXISTS` if the platform or the user has a customer.
/// - `NOT_FOUND` if the platform or the user is missing or out of the caller's reach.
/// - `FORBIDDEN` if the caller lacks `billing:manage` on the platform, or names another user.
pub async fn create(
    cx: &Context,
    scope: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    mut command: CreateCustomer,
) -> Result<Stored<Customer>> {
    let is_operator = cx.caller.is_operator();
    if let Some(user) = &command.user_id {
        if !is_operator && cx.caller.account_id() != Some(user) {
            return Err(Error::Forbidden);
        }
        if !iam::user::exists(uow, user).await? {
            return Err(Error::NotFound("user"));
        }
    }
    let needs_platform = !is_operator && command.user_id.is_none();
    if command.platform_id.is_some() || needs_platform {
        let named = command.platform_id.as_ref();
        let platform = authorize_billing::<permission::BillingManage>(cx, uow, named).await?;
        if platform.customer().is_some() {
            return Err(exists());
        }
        command.platform_id = Some(platform.platform_id().clone());
    }
    insert(cx, scope, uow, billing, command).await
}

/// Returns the customer.
#[must_use]
pub fn get(scope: &CustomerScope<permission::BillingRead>) -> Stored<Customer> {
    Stored::clone(scope)
}

/// Updates a customer. The provider gets the new details within minutes; see
/// [`send_details`](super::customer_details::send_details).
///
/// # Errors
/// `VERSION_CONFLICT` if the customer does not match `If-Match`.
pub async fn update(
    cx: &Context,
    scope: &CustomerScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    command: UpdateCustomer,
) -> Result<Stored<Customer>> {
    let mut next = scope.edit();
    command.apply_to(&mut next);
    if (&next.email, &next.name) != (&scope.email, &scope.name) {
        next.mark_unsent(billing.now(uow).await?);
    }
    audited::replace(cx, scope, uow, scope, next, "customer.updated").await
}

/// Returns the customer of a platform, which is created if there is none. `email` is the address of a new customer.
///
/// # Errors
/// `VALIDATION_ERROR` if there is no customer and neither the request nor the caller has an address.
pub async fn ensure_of_platform(
    cx: &Context,
    scope: &BillingScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    email: Option<Email>,
) -> Result<CustomerScope<permission::BillingManage>> {
    if let Some(customer) = scope.customer() {
        return Ok(customer);
    }
    let email = match (email, cx.caller.user_id()) {
        (Some(email), _) => Some(email),
        (None, Some(user)) => iam::user::email_of(uow, user).await?,
        (None, None) => None,
    };
    let email = email.ok_or_else(|| {
        let message = "The platform has no customer yet; name the address for its invoices.";
        Error::invalid("billingEmail", "required", message)
    })?;
    let command = CreateCustomer {
        platform_id: Some(scope.platform_id().clone()),
        ..CreateCustomer::with_email(email)
    };
    let customer = insert(cx, scope, uow, billing, command).await?;
    Ok(scope.with_customer(customer))
}

/// Returns the customer that is a user, which is created if there is none.
///
/// # Errors
/// `NOT_FOUND` if there is no such user.
pub(super) async fn ensure_of_user(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    user: &UserId,
) -> Result<CustomerId> {
    let of_user = CustomerQuery::OfUser(user.clone());
    if let Some(known) = unowned_records::<Customer>(uow).first(&of_user).await? {
        return Ok(known.id.clone());
    }
    let email = iam::user::email_of(uow, user).await?;
    let email = email.ok_or(Error::NotFound("user"))?;
    let command = CreateCustomer {
        user_id: Some(user.clone()),
        ..CreateCustomer::with_email(email)
    };
    let customer = insert(cx, scope, uow, billing, command).await?;
    Ok(customer.id.clone())
}

async fn insert(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    command: CreateCustomer,
) -> Result<Stored<Customer>> {
    if let Some(user) = &command.user_id {
        let of_user = CustomerQuery::OfUser(user.clone());
        if unowned_records::<Customer>(uow)
            .first(&of_user)
            .await?
            .is_some()
        {
            return Err(exists());
        }
    }
    let now = billing.now(uow).await?;
    let id = free_id(cx, uow, now).await?;
    let provider = billing.payments.provider();
    let customer = Customer::create(id, command, billing.currency(), provider, now);
    audited::insert(cx, scope, uow, customer, "customer.created").await
}

/// Generates an id whose invoice numbers no other customer has.
async fn free_id(cx: &Context, uow: &mut dyn UnitOfWork, now: Timestamp) -> Result<CustomerId> {
    for _ in 0..MAX_IDS {
        let id = CustomerId::generate(now, cx.entropy.as_ref());
        let with_prefix = CustomerQuery::WithPrefix(Customer::invoice_prefix_of(&id));
        let known = unowned_records::<Customer>(uow).first(&with_prefix).await?;
        if known.is_none() {
            return Ok(id);
        }
    }
    Err(Error::Unavailable(
        "no free prefix of invoice numbers was found".to_owned(),
    ))
}

fn exists() -> Error {
    Error::refused(
        Code::CustomerExists,
        "The platform or user already has a customer.",
    )
}
