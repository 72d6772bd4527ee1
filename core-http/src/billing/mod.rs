//! The billing service: plans, customers, payment methods, subscriptions, invoices, metered usage and credits.

mod credit;
mod customer;
mod invoice;
mod operate;
mod override_terms;
mod pages;
mod payment_method;
mod plan;
mod plan_change;
mod platform;
mod portal;
mod spelling;
mod subscription;
mod tick;
mod usage;
mod usage_metrics;
mod view;
mod webhook;

pub use usage_metrics::UsageMetrics;

use std::sync::Arc;

use core_domain::kernel::SuiteService;
use core_domain::use_case::billing::Billing;
use pages::BillingErrorPages;

use crate::kernel::{App, Endpoint, Service, ServiceError, with_tag};

/// Builds the service. Most paths of a platform's own billing also exist below `/api/billing`.
///
/// # Errors
/// [`ServiceError`] if the endpoint table is inconsistent.
pub fn service(app: Arc<App>, billing: &Arc<Billing>) -> Result<Service, ServiceError> {
    Service::builder(SuiteService::Billing.as_str(), app, endpoints(billing))
        .purpose(
            "The billing service manages plans, customers, payment methods, subscriptions, \
             invoices, metered usage and credits. Amounts are whole numbers of minor units, for example cents.",
        )
        .tag("Plans", "The plans that customers can subscribe to.")
        .tag("Subscriptions", "Subscriptions and changes of their plan.")
        .tag("Invoices", "Invoices with their lines.")
        .tag("Usage", "Metered usage and its price.")
        .tag("Customers", "Platforms and users that pay.")
        .tag(
            "Payment methods",
            "Cards of a customer. The payment provider stores them.",
        )
        .tag(
            "Operators",
            "Credits, trials, overrides and the overview, for operators.",
        )
        .tag("Webhooks", "Events of the payment provider.")
        .tag("Pages", "HTML pages for customers.")
        .error_pages(Arc::new(BillingErrorPages))
        .build()
}

/// Returns the endpoint table of the billing service.
#[must_use]
pub fn endpoints(billing: &Arc<Billing>) -> Vec<Endpoint> {
    let mut subscriptions = subscription::rows(billing);
    subscriptions.extend(plan_change::rows(billing));
    let mut for_operators = credit::rows(billing);
    for_operators.extend(override_terms::rows(billing));
    for_operators.extend(operate::rows(billing));
    for_operators.extend(tick::rows(billing));
    let mut customers = customer::rows(billing);
    customers.extend(portal::rows(billing));
    let parts = [
        with_tag("Plans", plan::rows(billing)),
        with_tag("Subscriptions", subscriptions),
        with_tag("Invoices", invoice::rows(billing)),
        with_tag("Usage", usage::rows(billing)),
        with_tag("Customers", customers),
        with_tag("Payment methods", payment_method::rows(billing)),
        with_tag("Operators", for_operators),
        with_tag("Webhooks", webhook::rows(billing)),
        with_tag("Pages", pages::rows(billing)),
    ];
    parts.into_iter().flatten().collect()
}
