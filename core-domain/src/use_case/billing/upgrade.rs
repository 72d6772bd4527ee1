//! Upgrades with a new payment method in one request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Effective, How, change, find_live};
use super::charge::Charge;
use super::quote::Target;
use super::subscription::{PendingCharge, charge_or_undo, load};
use super::{Billing, invoice_state, plan};
use crate::access::{BillingScope, audited};
use crate::billing::{Invoice, Subscription};
use crate::kernel::{
    Code, Context, Email, Error, PlatformId, Result, Secret, Stored, permission, text_enum,
};
use crate::port::{Mode, Store, UnitOfWork};

/// Request body that upgrades a platform to a plan with a new payment method.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// The id of the plan, for example `growth` or `growth_year`.
    #[schemars(length(min = 1, max = 255))]
    pub plan_id: String,
    /// The payment method, which is attached and becomes the default.
    #[schemars(length(min = 1, max = 255))]
    pub payment_method_id: String,
    /// The address for invoices of the customer.
    pub billing_email: Email,
    /// The key that identifies repeated requests.
    #[schemars(extend("format" = "uuid"))]
    pub idempotency_key: String,
    /// The platform. Default: the one that the caller acts for.
    pub platform_id: Option<PlatformId>,
}

text_enum! {
    /// The status of an upgrade.
    pub enum UpgradeStatus {
        /// The subscription has the new plan, or will have it with its next period.
        Active = "active",
        /// The customer must confirm the charge.
        RequiresAction = "requires_action",
    }
}

/// The work of an upgrade that remains after the first unit of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingUpgrade {
    /// The charge.
    pub charge: PendingCharge,
    /// The key of the request.
    pub idempotency_key: String,
}

/// The result of an upgrade.
#[derive(Clone, Debug)]
pub struct DoneUpgrade {
    /// The subscription.
    pub subscription: Stored<Subscription>,
    /// The invoice of the change. `None` if there is none.
    pub invoice: Option<Stored<Invoice>>,
    /// Whether the customer must confirm the charge.
    pub status: UpgradeStatus,
    /// The secret with which a browser confirms the charge.
    pub client_secret: Option<Secret>,
}

/// Changes the plan of a platform and its payment method, in the first unit of work. Continue with [`finish_upgrade`].
///
/// # Errors
/// Those of [`super::change::change_tier`]; `NOT_FOUND` if there is no such plan, `ALREADY_ON_PLAN` if the subscription has it.
pub async fn upgrade(
    cx: &Context,
    scope: &BillingScope<permission::BillingManage>,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    command: Upgrade,
) -> Result<PendingUpgrade> {
    let seen = find_live(uow, scope.platform_id()).await?;
    let (terms, interval) = plan::find_plan(billing, &command.plan_id)?;
    let target = Target {
        terms,
        interval,
        quantity: seen.quantity,
    };
    if command.plan_id == seen.plan_id {
        return Err(Error::refused(
            Code::AlreadyOnPlan,
            "The subscription has this plan already.",
        ));
    }
    let payer = scope.existing_customer()?;
    let mut customer = payer.edit();
    customer.email = command.billing_email;
    let plain = &cx.without_conditions();
    audited::replace(plain, &payer, uow, &payer, customer, "customer.updated").await?;
    let how = How {
        proration_date: None,
        effective: Effective::Auto,
        has_new_method: true,
    };
    let pending = change(cx, scope, uow, billing, &seen, &target, &how).await?;
    Ok(PendingUpgrade {
        charge: PendingCharge {
            payment_method_id: Some(command.payment_method_id),
            ..pending
        },
        idempotency_key: command.idempotency_key,
    })
}

/// Attaches the payment method of an upgrade and charges its invoice.
///
/// # Errors
/// - `NOT_FOUND` if there is no such payment method.
/// - `PAYMENT_REQUIRED` if the charge was declined. The tier is as before.
/// - `PAYMENT_PROVIDER_UNAVAILABLE` and `PAYMENT_OUTCOME_UNKNOWN` if the provider fails.
pub async fn finish_upgrade(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    pending: &PendingUpgrade,
) -> Result<DoneUpgrade> {
    let charge = charge_or_undo(cx, store, billing, &pending.charge).await?;
    let (status, client_secret) = match charge {
        Some(Charge::ActionRequired { client_secret }) => {
            (UpgradeStatus::RequiresAction, client_secret)
        }
        Some(failed @ (Charge::Declined { .. } | Charge::NotMade)) => {
            let invoice = pending.charge.invoice_id.as_ref();
            if let Some(refusal) = invoice.and_then(|invoice| failed.refusal(invoice)) {
                return Err(refusal);
            }
            (UpgradeStatus::Active, None)
        }
        Some(Charge::Paid) | None => (UpgradeStatus::Active, None),
    };
    let subscription = load(store, &pending.charge.subscription_id).await?;
    let mut uow = store.begin(Mode::Read).await?;
    let invoice = match &pending.charge.invoice_id {
        Some(id) => Some(invoice_state::load(uow.as_mut(), id).await?),
        None => None,
    };
    uow.rollback().await;
    Ok(DoneUpgrade {
        subscription,
        invoice,
        status,
        client_secret,
    })
}
