//! Scopes of billing requests: which platform, customer, subscription or invoice a request is about.

use core_domain::access::{
    BillingScope, CustomerScope, Requirement, authorize_billing, authorize_customer,
    authorize_invoice, authorize_subscription,
};
use core_domain::kernel::{
    Context, CustomerId, InvoiceId, PermissionType, PlatformId, Result, SubscriptionId,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::billing::cancellation::CancelSubscription;
use core_domain::use_case::billing::change::ChangeTier;
use core_domain::use_case::billing::subscription::Subscribe;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::kernel::{Input, OpenScope};

/// A query or body that can name a platform.
pub(super) trait NamesPlatform: Sync {
    /// Returns the id of the platform, if the request names one.
    fn platform_id(&self) -> Option<&PlatformId>;
}

impl NamesPlatform for () {
    fn platform_id(&self) -> Option<&PlatformId> {
        None
    }
}

/// A query or body that only names a platform.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfPlatform {
    /// The platform. Default: the one that the caller acts for.
    pub(super) platform_id: Option<PlatformId>,
}

/// A query that must name a platform.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfNamedPlatform {
    /// The platform.
    platform_id: PlatformId,
}

impl NamesPlatform for OfNamedPlatform {
    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }
}

macro_rules! names_platform {
    ($($named:ty),+) => {$(
        impl NamesPlatform for $named {
            fn platform_id(&self) -> Option<&PlatformId> {
                self.platform_id.as_ref()
            }
        }
    )+};
}
names_platform!(OfPlatform, Subscribe, CancelSubscription, ChangeTier);

impl<G, Q, B> OpenScope<Input<(), Q, B>> for BillingScope<G>
where
    G: PermissionType,
    Q: NamesPlatform,
    B: NamesPlatform,
{
    const REQUIREMENT: Requirement = Requirement::Permission(G::PERMISSION);

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a Input<(), Q, B>,
    ) -> BoxFuture<'a, Result<Self>> {
        let platform = input.query.platform_id().or(input.body.platform_id());
        Box::pin(authorize_billing(cx, uow, platform))
    }
}

macro_rules! customer_scopes {
    ($($id:ty: $authorize:path;)+) => {$(
        impl<G, Q, B> OpenScope<Input<($id,), Q, B>> for CustomerScope<G>
        where
            G: PermissionType,
            Q: Sync,
            B: Sync,
        {
            const REQUIREMENT: Requirement = Requirement::Permission(G::PERMISSION);

            fn open<'a>(
                cx: &'a Context,
                uow: &'a mut dyn UnitOfWork,
                input: &'a Input<($id,), Q, B>,
            ) -> BoxFuture<'a, Result<Self>> {
                Box::pin($authorize(cx, uow, &input.path.0))
            }
        }
    )+};
}
customer_scopes! {
    CustomerId: authorize_customer;
    SubscriptionId: authorize_subscription;
    InvoiceId: authorize_invoice;
}

/// A body that names a customer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfCustomer {
    /// The id of the customer who gets the payment method.
    pub(super) customer_id: CustomerId,
}

impl<G, Q> OpenScope<Input<(String,), Q, OfCustomer>> for CustomerScope<G>
where
    G: PermissionType,
    Q: Sync,
{
    const REQUIREMENT: Requirement = Requirement::Permission(G::PERMISSION);

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a Input<(String,), Q, OfCustomer>,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize_customer(cx, uow, &input.body.customer_id))
    }
}
