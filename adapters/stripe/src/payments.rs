//! The implementation of the payments port for Stripe.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::billing::PaymentProvider;
use core_domain::kernel::{Clock, Secret, Timestamp};
use core_domain::port::{
    Close, CollectOutcome, InvoiceReference, LostDispute, OpKey, PayingCustomer, Payments,
    PaymentsError, ProviderEvent, ProviderInvoice, ProviderMethod, ProviderRefund,
    ProviderSetupIntent, PushedInvoice, WebhookError,
};

use crate::client::{Client, TlsError};
use crate::invoice::{charge, close, look_up, push};
use crate::options::{OptionError, StripeAccount, StripeOptions};
use crate::rate::Caller;
use crate::session::Session;
use crate::{customer, dispute, event, method, refund, webhook};

/// An error that prevents the use of Stripe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StripeError {
    /// An option is invalid.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The TLS configuration could not be created.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A payment provider that uses one Stripe account. Cheap to clone; clones share the connections, the rate limiter and
/// the breaker.
#[derive(Clone, Debug)]
pub struct StripePayments {
    client: Client,
    caller: Caller,
    webhook_secrets: Arc<[Secret]>,
    publishable_key: Option<String>,
}

impl StripePayments {
    /// Creates the provider for callers who wait. Sends no requests yet.
    ///
    /// # Errors
    /// [`StripeError`] if an option is invalid or TLS cannot be set up.
    pub fn new(
        account: StripeAccount,
        options: StripeOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StripeError> {
        account.check()?;
        options.check()?;
        Ok(Self {
            client: Client::new(&account, options, clock)?,
            caller: Caller::Person,
            webhook_secrets: account.webhook_secrets.into(),
            publishable_key: account.publishable_key,
        })
    }

    /// Returns the provider for jobs, over the same connections. Its requests have more time, and those of waiting callers
    /// go before them.
    #[must_use]
    pub fn for_jobs(&self) -> Self {
        Self {
            caller: Caller::Job,
            ..self.clone()
        }
    }

    fn session(&self) -> Session<'_> {
        Session::new(&self.client, self.caller)
    }
}

#[async_trait]
impl Payments for StripePayments {
    fn provider(&self) -> PaymentProvider {
        PaymentProvider::Stripe
    }

    fn is_live(&self) -> bool {
        self.client.is_live()
    }

    fn publishable_key(&self) -> Option<String> {
        self.publishable_key.clone()
    }

    async fn ensure_customer(
        &self,
        key: &OpKey,
        customer: &PayingCustomer,
    ) -> Result<String, PaymentsError> {
        Ok(customer::ensure(&self.session(), key, customer).await?)
    }

    async fn update_customer(
        &self,
        key: &OpKey,
        provider_id: &str,
        customer: &PayingCustomer,
    ) -> Result<(), PaymentsError> {
        Ok(customer::update(&self.session(), key, provider_id, customer).await?)
    }

    async fn create_setup_intent(
        &self,
        key: &OpKey,
        customer: &str,
    ) -> Result<ProviderSetupIntent, PaymentsError> {
        Ok(customer::create_setup_intent(&self.session(), key, customer).await?)
    }

    async fn methods(&self, customer: &str) -> Result<Vec<ProviderMethod>, PaymentsError> {
        Ok(method::list(&self.session(), customer).await?)
    }

    async fn method(&self, id: &str) -> Result<Option<ProviderMethod>, PaymentsError> {
        Ok(method::get(&self.session(), id).await?)
    }

    async fn attach(
        &self,
        key: &OpKey,
        method: &str,
        customer: &str,
    ) -> Result<ProviderMethod, PaymentsError> {
        Ok(method::attach(&self.session(), key, method, customer).await?)
    }

    async fn detach(&self, key: &OpKey, method: &str) -> Result<ProviderMethod, PaymentsError> {
        Ok(method::detach(&self.session(), key, method).await?)
    }

    async fn set_default(
        &self,
        key: &OpKey,
        customer: &str,
        method: &str,
    ) -> Result<(), PaymentsError> {
        Ok(customer::set_default(&self.session(), key, customer, method).await?)
    }

    async fn push_invoice(
        &self,
        invoice: &PushedInvoice,
    ) -> Result<ProviderInvoice, PaymentsError> {
        Ok(push::push(&self.session(), invoice).await?)
    }

    async fn collect(
        &self,
        key: &OpKey,
        provider_invoice: &str,
        method: &str,
    ) -> Result<CollectOutcome, PaymentsError> {
        Ok(charge::collect(&self.session(), key, provider_invoice, method).await?)
    }

    async fn close(
        &self,
        key: &OpKey,
        provider_invoice: &str,
        how: Close,
    ) -> Result<(), PaymentsError> {
        Ok(close::close(&self.session(), key, provider_invoice, how).await?)
    }

    async fn look_up(
        &self,
        invoice: &InvoiceReference,
    ) -> Result<Option<ProviderInvoice>, PaymentsError> {
        Ok(look_up::look_up(&self.session(), invoice).await?)
    }

    async fn invoice(&self, id: &str) -> Result<Option<ProviderInvoice>, PaymentsError> {
        Ok(look_up::find(&self.session(), id).await?)
    }

    async fn refunds(&self, id: &str) -> Result<Vec<ProviderRefund>, PaymentsError> {
        Ok(refund::list(&self.session(), id).await?)
    }

    async fn lost_dispute(&self, event: &str) -> Result<Option<LostDispute>, PaymentsError> {
        Ok(dispute::find_lost(&self.session(), event).await?)
    }

    async fn default_method(&self, customer: &str) -> Result<Option<String>, PaymentsError> {
        Ok(customer::default_method(&self.session(), customer).await?)
    }

    async fn portal(
        &self,
        customer: &str,
        return_url: &str,
    ) -> Result<Option<String>, PaymentsError> {
        Ok(Some(
            customer::portal(&self.session(), customer, return_url).await?,
        ))
    }

    async fn events_since(&self, since: Timestamp) -> Result<Vec<ProviderEvent>, PaymentsError> {
        Ok(event::since(&self.session(), since).await?)
    }

    fn verify_webhook(
        &self,
        body: &[u8],
        signature: &str,
        now: Timestamp,
    ) -> Result<ProviderEvent, WebhookError> {
        let secrets = &self.webhook_secrets;
        webhook::verify(secrets, self.is_live(), body, signature, now)
    }
}
