//! The payments port: customers, payment methods and invoices at a payment provider.

use std::time::Duration;

use async_trait::async_trait;

use super::Cause;
use crate::billing::{Card, Currency, InvoiceStatus, Money, PaymentProvider};
use crate::kernel::{CustomerId, InvoiceId, PlatformId, Secret, Timestamp};

/// Charges invoices and manages payment methods at a payment provider.
///
/// The provider knows customers, their payment methods, and one invoice for each invoice of the suite. It decides
/// nothing about subscriptions or amounts. A change has an [`OpKey`], which is stored before the first call; a repeated
/// call with the same key has the effect of one. No call is made inside a unit of work.
///
/// Every method can fail with [`PaymentsError::Unavailable`], [`PaymentsError::Throttled`], [`PaymentsError::Invalid`]
/// and [`PaymentsError::Unauthorized`], and a change also with [`PaymentsError::Unknown`] and
/// [`PaymentsError::Conflict`]. The `# Errors` sections list only the other causes.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait Payments: Send + Sync + std::fmt::Debug {
    /// Returns which provider this is.
    fn provider(&self) -> PaymentProvider;

    /// Returns whether charges move real money.
    fn is_live(&self) -> bool;

    /// Returns the key with which a browser sends card data to the provider. `None` if the provider has none.
    fn publishable_key(&self) -> Option<String>;

    /// Creates a customer and returns its id at the provider.
    ///
    /// # Errors
    /// Only those of every method.
    async fn ensure_customer(
        &self,
        key: &OpKey,
        customer: &PayingCustomer,
    ) -> Result<String, PaymentsError>;

    /// Replaces the details of a customer.
    ///
    /// # Errors
    /// Only those of every method.
    async fn update_customer(
        &self,
        key: &OpKey,
        provider_id: &str,
        customer: &PayingCustomer,
    ) -> Result<(), PaymentsError>;

    /// Creates a setup intent, with which a browser adds a payment method for charges without the customer.
    ///
    /// # Errors
    /// Only those of every method.
    async fn create_setup_intent(
        &self,
        key: &OpKey,
        customer: &str,
    ) -> Result<ProviderSetupIntent, PaymentsError>;

    /// Returns the payment methods that are attached to a customer, newest first.
    ///
    /// # Errors
    /// Only those of every method.
    async fn methods(&self, customer: &str) -> Result<Vec<ProviderMethod>, PaymentsError>;

    /// Returns the payment method with this id. Returns `None` if there is none.
    ///
    /// # Errors
    /// Only those of every method.
    async fn method(&self, id: &str) -> Result<Option<ProviderMethod>, PaymentsError>;

    /// Attaches a payment method to a customer. Does nothing if it is attached to this customer.
    ///
    /// # Errors
    /// - [`PaymentsError::Declined`] if the issuer of the card refuses it.
    /// - [`PaymentsError::Invalid`] if the method does not exist, or is attached to another customer.
    async fn attach(
        &self,
        key: &OpKey,
        method: &str,
        customer: &str,
    ) -> Result<ProviderMethod, PaymentsError>;

    /// Detaches a payment method. It can never be charged again.
    ///
    /// # Errors
    /// Only those of every method.
    async fn detach(&self, key: &OpKey, method: &str) -> Result<ProviderMethod, PaymentsError>;

    /// Makes an attached payment method the one that the provider shows as the default.
    ///
    /// # Errors
    /// Only those of every method.
    async fn set_default(
        &self,
        key: &OpKey,
        customer: &str,
        method: &str,
    ) -> Result<(), PaymentsError>;

    /// Creates and finalizes an invoice, which is then open. Nothing is charged. If the provider has the invoice already, returns
    /// it; it can then be paid.
    ///
    /// # Errors
    /// [`PaymentsError::Invalid`] if the provider computes another amount due.
    async fn push_invoice(&self, invoice: &PushedInvoice)
    -> Result<ProviderInvoice, PaymentsError>;

    /// Charges an open invoice to a payment method.
    ///
    /// # Errors
    /// [`PaymentsError::Invalid`] if the invoice is not open.
    async fn collect(
        &self,
        key: &OpKey,
        provider_invoice: &str,
        method: &str,
    ) -> Result<CollectOutcome, PaymentsError>;

    /// Ends an open invoice without a charge. Does nothing if it has ended in this way.
    ///
    /// # Errors
    /// [`PaymentsError::Invalid`] if the invoice was paid.
    async fn close(
        &self,
        key: &OpKey,
        provider_invoice: &str,
        how: Close,
    ) -> Result<(), PaymentsError>;

    /// Returns an invoice as it is at the provider, by the id there or, if that is not known, by our id. Returns `None`
    /// if the provider has none.
    ///
    /// # Errors
    /// Only those of every method.
    async fn look_up(
        &self,
        invoice: &InvoiceReference,
    ) -> Result<Option<ProviderInvoice>, PaymentsError>;

    /// Returns the invoice with this id at the provider. Returns `None` if there is none.
    ///
    /// # Errors
    /// Only those of every method.
    async fn invoice(&self, id: &str) -> Result<Option<ProviderInvoice>, PaymentsError>;

    /// Returns the refunds of a charge, or the refund with this id. A provider that makes no refunds returns none.
    ///
    /// # Errors
    /// Only those of every method.
    async fn refunds(&self, id: &str) -> Result<Vec<ProviderRefund>, PaymentsError>;

    /// Returns the dispute that an event is about, if it is lost: the bank of the customer has taken the money back for good.
    /// Returns `None` for another event. A provider without disputes returns none.
    ///
    /// # Errors
    /// Only those of every method.
    async fn lost_dispute(&self, event: &str) -> Result<Option<LostDispute>, PaymentsError>;

    /// Returns the payment method that the provider shows as the default of a customer. Returns `None` if it shows none.
    ///
    /// # Errors
    /// Only those of every method.
    async fn default_method(&self, customer: &str) -> Result<Option<String>, PaymentsError>;

    /// Opens a page of the provider on which a customer manages payment methods. Returns `None` if the provider has no
    /// such page; the suite then shows its own.
    ///
    /// # Errors
    /// Only those of every method.
    async fn portal(
        &self,
        customer: &str,
        return_url: &str,
    ) -> Result<Option<String>, PaymentsError>;

    /// Returns the events since an instant, oldest first, for events whose webhooks were missed.
    ///
    /// # Errors
    /// Only those of every method.
    async fn events_since(&self, since: Timestamp) -> Result<Vec<ProviderEvent>, PaymentsError>;

    /// Checks the signature of a webhook over its bytes, and returns its event.
    ///
    /// # Errors
    /// [`WebhookError`] if the event does not come from the provider, or is not for this installation.
    fn verify_webhook(
        &self,
        body: &[u8],
        signature: &str,
        now: Timestamp,
    ) -> Result<ProviderEvent, WebhookError>;
}

/// The key of a change at the provider: at most 255 characters. It is derived from the record that causes the change, so
/// that a repeated change has the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpKey(String);

impl OpKey {
    /// Creates the key of a step of the change that a record causes. Both are short.
    #[must_use]
    pub fn new(record: &str, step: &str) -> Self {
        Self(format!("{record}:{step}"))
    }

    /// Returns the key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The details of a customer that the provider gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayingCustomer {
    /// Our id of the customer.
    pub id: CustomerId,
    /// The platform that the customer pays for, if any.
    pub platform_id: Option<PlatformId>,
    /// The address for mails about payments.
    pub email: String,
    /// The name of the person or company, if known.
    pub name: Option<String>,
}

/// A setup intent at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderSetupIntent {
    /// The id at the provider.
    pub id: String,
    /// The secret with which a browser adds a payment method.
    pub client_secret: Secret,
    /// The status, in the words of Stripe, for example `requires_payment_method`.
    pub status: String,
}

/// A payment method at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderMethod {
    /// The id at the provider.
    pub id: String,
    /// The id at the provider of the customer that the method is attached to. `None` if it is attached to none.
    pub customer: Option<String>,
    /// The card.
    pub card: Card,
    /// When the method was created.
    pub created_at: Timestamp,
}

/// A refund at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderRefund {
    /// The id at the provider.
    pub id: String,
    /// The refunded amount in minor units.
    pub amount: i64,
    /// The currency of the amount.
    pub currency: Currency,
    /// Whether the money has left the account. A refund can take days, or fail.
    pub is_complete: bool,
}

/// A dispute that is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostDispute {
    /// The id at the provider.
    pub id: String,
    /// The id of the customer at the provider.
    pub customer: String,
    /// The amount that was taken back, in minor units.
    pub amount: i64,
    /// The currency of the amount.
    pub currency: Currency,
}

/// An invoice for the provider. Its lines add up to `amount_due`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedInvoice {
    /// Our id of the invoice. The keys of all changes to the invoice begin with it.
    pub id: InvoiceId,
    /// The number of the invoice. `None` if it gets one only when it is paid.
    pub number: Option<String>,
    /// The id of the customer at the provider.
    pub customer: String,
    /// The lines, including those for applied credits and balance.
    pub lines: Vec<PushedLine>,
    /// The amount to charge, above zero.
    pub amount_due: Money,
    /// The time at which the invoice was created or, if the clock creates it, was due. An invoice that is not new is looked up
    /// before it is pushed: a provider knows the key of a change only for a day, and a database that was restored from a backup
    /// does not know that the invoice was pushed.
    pub created_at: Timestamp,
}

/// A line of an invoice for the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedLine {
    /// Our id of the line.
    pub id: String,
    /// The description for people.
    pub description: String,
    /// The amount in minor units. May be negative.
    pub amount: i64,
}

/// The ids of an invoice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvoiceReference {
    /// Our id of the invoice.
    pub id: InvoiceId,
    /// The id of the customer at the provider.
    pub customer: String,
    /// The id of the invoice at the provider. `None` if it is not known.
    pub provider_id: Option<String>,
    /// When the invoice was created here.
    pub created_at: Timestamp,
}

/// An invoice as it is at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderInvoice {
    /// The id at the provider.
    pub id: String,
    /// Our id of the invoice. `None` if the invoice is not ours.
    pub invoice_id: Option<InvoiceId>,
    /// The status.
    pub status: InvoiceStatus,
    /// The amount to charge in minor units.
    pub amount_due: i64,
    /// The currency.
    pub currency: Currency,
    /// The outcome of the last charge. `None` if none was tried, or if it is not known.
    pub last_charge: Option<CollectOutcome>,
    /// The address of the provider's own page, on which the customer pays the invoice with any card and confirms a charge.
    /// `None` if there is none.
    pub page_url: Option<String>,
}

/// How an open invoice ends without a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// It is cancelled.
    Void,
    /// It is written off.
    Uncollectible,
    /// It was paid in another way.
    PaidOutOfBand,
}

/// The outcome of a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollectOutcome {
    /// The invoice is paid.
    Paid,
    /// The issuer of the card has refused the charge.
    Declined(Decline),
    /// The customer must confirm the charge in a browser with this secret.
    ActionRequired {
        /// The secret for the browser.
        client_secret: Secret,
    },
    /// The provider does not know the outcome yet.
    Processing,
}

/// The reason why the issuer of a card refuses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decline {
    /// The code of the error, for example `card_declined` or `expired_card`.
    pub error_code: String,
    /// The code of the issuer, for example `insufficient_funds`. `None` if it gave none.
    pub decline_code: Option<String>,
    /// Whether a later attempt with the same card is pointless.
    pub is_hard: bool,
}

/// An event of the provider. It says only which object has changed: what counts is the object as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderEvent {
    /// The id of the event, which identifies repeated deliveries.
    pub id: String,
    /// The type of the event, for example `invoice.paid`.
    pub kind: String,
    /// The id of the changed object at the provider. `None` if the object has none.
    pub object_id: Option<String>,
    /// The id of the customer at the provider, if the event has one.
    pub customer: Option<String>,
    /// When the event happened, in whole seconds. Events of one second have no order.
    pub created_at: Timestamp,
}

/// The error of a payment provider.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PaymentsError {
    /// The provider could not be reached. Nothing has happened.
    #[error("the payment provider cannot be reached")]
    Unavailable(#[source] Cause),
    /// The provider wants fewer requests. Nothing has happened.
    #[error("the payment provider limits the number of requests")]
    Throttled(Duration),
    /// The request was sent, but there is no response that can be trusted. Repeat it with the same key, or look up the
    /// object.
    #[error("the outcome of the request to the payment provider is unknown")]
    Unknown(#[source] Cause),
    /// Another request changes the same object. Repeat the request with the same key.
    #[error("another request changes the same object at the payment provider")]
    Conflict,
    /// The issuer of the card refuses it.
    #[error("the card was declined")]
    Declined(Decline),
    /// The provider has refused the request as wrong. A repetition is pointless.
    #[error("the payment provider refused the request: {0}")]
    Invalid(String),
    /// The credential of the installation at the provider is wrong, or may not do this.
    #[error("the payment provider refused the credential: {0}")]
    Unauthorized(String),
    /// The provider is not set up for charges.
    #[error("{0}")]
    Disabled(&'static str),
}

impl PaymentsError {
    /// Returns whether the next request will fail as well, whatever it is about.
    #[must_use]
    pub const fn concerns_all(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_) | Self::Throttled(_) | Self::Unauthorized(_) | Self::Disabled(_)
        )
    }
}

/// The reasons why a webhook is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// The provider sends no webhooks, or no secret is configured.
    #[error("webhooks of this provider are not configured")]
    NotConfigured,
    /// The signature is missing, malformed or wrong.
    #[error("the signature is not valid")]
    Signature,
    /// The signature is more than 300 seconds away from now.
    #[error("the signature is too old")]
    Stale,
    /// The event is from the test mode and the key from the live mode, or the other way around.
    #[error("the event belongs to another mode")]
    OtherMode,
    /// The body is not an event of a known version.
    #[error("the event cannot be read: {0}")]
    Malformed(String),
}
