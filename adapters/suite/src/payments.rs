//! Chooses the payment provider: the one set on the builder, Stripe, or the embedded one.

use std::sync::Arc;

use core_domain::port::{Payments, Store};
use core_domain::use_case::billing::ledger::Ledger;
use core_http::gateway::ConfigError;
use core_http::kernel::metrics::Metrics;

use crate::metrics::MeteredPayments;

#[cfg(feature = "stripe")]
use crate::settings::refused_by_stripe;
use crate::{SuiteBuilder, SuiteError};

/// The payment provider, in two forms that share all limits.
pub(crate) struct PaymentProviders {
    /// For callers who wait.
    pub(crate) interactive: Arc<dyn Payments>,
    /// For background tasks, whose requests have more time and lower priority.
    pub(crate) background: Arc<dyn Payments>,
}

impl PaymentProviders {
    fn same(payments: Arc<dyn Payments>) -> Self {
        Self {
            interactive: Arc::clone(&payments),
            background: payments,
        }
    }

    /// Returns the same provider with counted calls.
    pub(crate) fn with_metrics(self, metrics: &Metrics) -> Self {
        let metered = |payments| Arc::new(MeteredPayments::new(payments, metrics)) as _;
        Self {
            interactive: metered(self.interactive),
            background: metered(self.background),
        }
    }

    pub(crate) fn of(builder: &SuiteBuilder, store: &Arc<dyn Store>) -> Result<Self, SuiteError> {
        if let Some(given) = &builder.payments {
            return Ok(Self::same(Arc::clone(given)));
        }
        if let Some(stripe) = stripe(builder)? {
            return Ok(stripe);
        }
        let accepts_charges = builder.settings.billing.allow_simulated_payments;
        let (store, entropy) = (Arc::clone(store), Arc::clone(&builder.entropy));
        Ok(Self::same(Arc::new(Ledger::new(
            store,
            entropy,
            accepts_charges,
        ))))
    }
}

#[cfg(feature = "stripe")]
fn stripe(builder: &SuiteBuilder) -> Result<Option<PaymentProviders>, SuiteError> {
    let Some(account) = builder.stripe.clone() else {
        return Ok(None);
    };
    tracing::info!(
        is_live = account.is_live(),
        base_url = account.base_url,
        "invoices are charged at Stripe"
    );
    let options = builder.settings.stripe.clone();
    let clock = builder.clock_or_system();
    let stripe = core_stripe::StripePayments::new(account, options, clock)?;
    Ok(Some(PaymentProviders {
        background: Arc::new(stripe.for_jobs()),
        interactive: Arc::new(stripe),
    }))
}

#[cfg(not(feature = "stripe"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
const fn stripe(_: &SuiteBuilder) -> Result<Option<PaymentProviders>, SuiteError> {
    Ok(None)
}

/// Checks the form of the Stripe account, without a request to Stripe.
#[cfg(feature = "stripe")]
pub(crate) fn check_payments(builder: &SuiteBuilder) -> Result<(), ConfigError> {
    let checked = builder
        .stripe
        .as_ref()
        .map(core_stripe::StripeAccount::check);
    checked.transpose().map(drop).map_err(refused_by_stripe)
}

/// Does nothing: without the feature `stripe` there is no account.
#[cfg(not(feature = "stripe"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
pub(crate) const fn check_payments(_: &SuiteBuilder) -> Result<(), ConfigError> {
    Ok(())
}
