//! Customers: who pays (contract: "Customer").

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::money::{Currency, Money, MoneyError};
use super::party::{Address, NewAddress, Party, TaxId};
use super::payment_method::{Card, PaymentProvider};
use crate::kernel::{
    CustomerId, Email, Name, OrganizationName, PlatformId, Timestamp, UserId, record,
    update_command,
};

/// A customer: a platform or a person that pays for subscriptions. It outlives its platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Customer {
    /// The id of the customer.
    pub id: CustomerId,
    /// The platform that the customer pays for. `null` if the customer is a person or an outsider.
    pub platform_id: Option<PlatformId>,
    /// The user that the customer is. `null` if it is a platform or an outsider.
    pub user_id: Option<UserId>,
    /// The address for invoices and mails about payments.
    pub email: Email,
    /// The name of the person or company. `null` if unknown.
    pub name: Option<Name>,
    /// The postal address, which is on invoices and decides about taxes. `null` if unknown.
    pub address: Option<Address>,
    /// The number under which the customer is registered for tax. `null` if there is none.
    pub tax_id: Option<TaxId>,
    /// The price of the metered usage of a period, in minor units, at whose 50, 80 and 100 percent the customer is alerted.
    /// `null` if the customer wants no such alert.
    pub spend_alert: Option<i64>,
    /// The currency of the balance.
    pub currency: Currency,
    /// The amount that the customer owes beside open invoices, in minor units. Negative if the customer has paid in advance.
    pub balance: i64,
    /// The amount that is left of the customer's credits, in minor units. Never negative.
    pub credit_balance: i64,
    /// The id of the payment method that is charged, unless the subscription has its own. `null` if there is none.
    pub default_payment_method_id: Option<String>,
    /// Whether an invoice could not be collected and is still open.
    pub delinquent: bool,
    /// The payment provider.
    pub provider: PaymentProvider,
    /// The id of the customer at the provider. `null` until the provider is needed.
    pub provider_id: Option<String>,
    /// When the customer was created.
    pub created_at: Timestamp,
    /// When the customer was last changed.
    pub updated_at: Timestamp,
    /// The first part of the numbers of the customer's invoices, which no other customer has.
    #[serde(skip)]
    pub invoice_prefix: String,
    /// The number of invoices that have a number.
    #[serde(skip)]
    pub invoice_count: i64,
    /// The card of the default payment method. `None` if there is none.
    #[serde(skip)]
    pub default_card: Option<Card>,
    /// When the customer is notified that this card expires. `None` if that was done, or there is no card.
    #[serde(skip)]
    pub card_notice_at: Option<Timestamp>,
    /// Since when the provider has old details of the customer. `None` if it has the present ones, or none.
    #[serde(skip)]
    pub unsent_since: Option<Timestamp>,
}

/// How long before its end a card is notified about.
const CARD_NOTICE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

record! {
    Customer as "customer" by id, asked CustomerQuery;
    audited in |customer| customer.platform_id.as_ref(), touched updated_at;
}

impl Customer {
    /// Creates a customer without credits, debts and payment methods.
    #[must_use]
    pub fn create(
        id: CustomerId,
        command: CreateCustomer,
        currency: Currency,
        provider: PaymentProvider,
        now: Timestamp,
    ) -> Self {
        let invoice_prefix = Self::invoice_prefix_of(&id);
        Self {
            id,
            platform_id: command.platform_id,
            user_id: command.user_id,
            email: command.email,
            name: command.name.map(Into::into),
            address: command.address.map(Into::into),
            tax_id: command.tax_id,
            spend_alert: command.spend_alert,
            currency,
            balance: 0,
            credit_balance: 0,
            default_payment_method_id: None,
            delinquent: false,
            provider,
            provider_id: None,
            created_at: now,
            updated_at: now,
            invoice_prefix,
            invoice_count: 0,
            default_card: None,
            card_notice_at: None,
            unsent_since: None,
        }
    }

    /// Returns the first part of the numbers of a customer's invoices: the last eight digits of its id, which are
    /// random. The first ones are a time, and thus those of every customer that was created in the same minute.
    #[must_use]
    pub fn invoice_prefix_of(id: &CustomerId) -> String {
        let digits: Vec<char> = id.as_str().chars().filter(|c| *c != '-').collect();
        let random = digits.len().saturating_sub(8);
        digits[random..].iter().collect::<String>().to_uppercase()
    }

    /// Returns the number of the customer's next invoice.
    #[must_use]
    pub fn next_invoice_number(&self) -> String {
        self.invoice_number(self.invoice_count.saturating_add(1))
    }

    /// Returns the number of the customer's invoice at a position, counted from 1.
    #[must_use]
    pub fn invoice_number(&self, position: i64) -> String {
        format!("{}-{position:06}", self.invoice_prefix)
    }

    /// Returns the position of the customer's invoice with a number. Returns `None` if the number is not one of this
    /// customer's.
    #[must_use]
    pub fn invoice_position(&self, number: &str) -> Option<i64> {
        let digits = number
            .strip_prefix(&self.invoice_prefix)?
            .strip_prefix('-')?;
        let position = digits.parse::<i64>().ok()?;
        let is_number = position > 0 && self.invoice_number(position) == number;
        is_number.then_some(position)
    }

    /// Sets the default payment method, and plans the notice that its card expires.
    pub fn set_default_method(&mut self, method: Option<(&str, &Card)>, now: Timestamp) {
        self.default_payment_method_id = method.map(|(id, _)| id.to_owned());
        self.default_card = method.map(|(_, card)| card.clone());
        self.plan_card_notice(now);
    }

    /// Plans the notice that the card of the default payment method expires: 30 days before, or at once if it expires
    /// sooner. An expired card is not notified about.
    pub fn plan_card_notice(&mut self, now: Timestamp) {
        let expiry = self.default_card.as_ref().and_then(Card::expires_at);
        let expiry = expiry.filter(|expiry| *expiry > now);
        self.card_notice_at = expiry.map(|expiry| expiry.minus(CARD_NOTICE).max(now));
    }

    /// Records that the provider has old details of the customer.
    pub fn mark_unsent(&mut self, now: Timestamp) {
        if self.provider_id.is_some() {
            self.unsent_since = Some(now);
        }
    }

    /// Returns the details that an invoice keeps.
    #[must_use]
    pub fn party(&self) -> Party {
        Party {
            name: self.name.clone(),
            email: Some(self.email.clone()),
            address: self.address.clone(),
            tax_id: self.tax_id.clone(),
        }
    }

    /// Returns the balance as an amount.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the stored amount is too large.
    pub fn balance(&self) -> Result<Money, MoneyError> {
        Money::new(self.balance.into(), self.currency)
    }
}

/// Queries for customers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomerQuery {
    /// All customers, newest first.
    All,
    /// The customer of a platform.
    OfPlatform(PlatformId),
    /// The customer that is a user.
    OfUser(UserId),
    /// The customer whose invoice numbers begin like this.
    WithPrefix(String),
    /// The customer with this id at the provider.
    WithProviderId(String),
    /// The customers who are notified about their card by an instant, the first one first.
    CardNoticeDue {
        /// The customer; `None` for all.
        of: Option<CustomerId>,
        /// The instant.
        by: Timestamp,
    },
    /// The customers whose details have to be sent to the provider, the first one first.
    Unsent,
}

/// Request body that creates a customer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateCustomer {
    /// The address for invoices and mails about payments.
    pub email: Email,
    /// The platform that the customer pays for. Default: the platform that the caller acts for, unless `userId` is
    /// given. An operator's customer needs none.
    pub platform_id: Option<PlatformId>,
    /// The user that the customer is. Default: none.
    pub user_id: Option<UserId>,
    /// The name of the person or company. Default: none.
    pub name: Option<OrganizationName>,
    /// The postal address, which is on invoices and decides about taxes. Default: none.
    pub address: Option<NewAddress>,
    /// The number under which the customer is registered for tax. Default: none.
    pub tax_id: Option<TaxId>,
    /// The price of the metered usage of a period, in minor units, at whose 50, 80 and 100 percent the customer is alerted.
    /// Default: none.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub spend_alert: Option<i64>,
}

impl CreateCustomer {
    /// Returns the command that creates a customer with an email address alone.
    #[must_use]
    pub const fn with_email(email: Email) -> Self {
        Self {
            email,
            platform_id: None,
            user_id: None,
            name: None,
            address: None,
            tax_id: None,
            spend_alert: None,
        }
    }
}

update_command! {
    /// Request body that updates a customer. Omitted fields stay unchanged.
    pub struct UpdateCustomer for Customer {
        set {
            /// The address for invoices and mails about payments.
            email: Email,
        }
        optional {
            /// The name of the person or company. `null` clears it.
            name: OrganizationName,
            /// The postal address, which is on invoices and decides about taxes. `null` clears it.
            address: NewAddress,
            /// The number under which the customer is registered for tax. `null` clears it.
            tax_id: TaxId,
            /// The price of the metered usage of a period, in minor units, at whose 50, 80 and 100 percent the customer is
            /// alerted. `null` turns the alerts off.
            #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
            spend_alert: i64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invoices_are_numbered_from_one_and_begin_with_random_digits_of_the_customer() {
        let id = CustomerId::parse("0192f3ab-7c20-7d3e-9b4a-5f6c7d8e9f01").unwrap();
        let command = CreateCustomer::with_email(Email::parse("ada@example.org").unwrap());
        let provider = PaymentProvider::Ledger;
        let now = Timestamp::EPOCH;
        let mut customer = Customer::create(id, command, Currency::USD, provider, now);
        assert_eq!(customer.next_invoice_number(), "7D8E9F01-000001");
        customer.invoice_count = 1_000_000;
        assert_eq!(customer.next_invoice_number(), "7D8E9F01-1000001");
        for position in [1, 999_999, 1_000_000] {
            let number = customer.invoice_number(position);
            assert_eq!(customer.invoice_position(&number), Some(position));
        }
        for number in [
            "7D8E9F01-1",
            "7D8E9F01-000000",
            "7D8E9F01-+00001",
            "7D8E9F02-000001",
            "",
        ] {
            assert_eq!(customer.invoice_position(number), None, "{number}");
        }
    }
}
