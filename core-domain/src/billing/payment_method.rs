//! Payment methods, which the payment provider stores (contract: "Payment method").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calendar::{end_of_month, month_of};
use crate::kernel::{CustomerId, Timestamp, text_enum};

text_enum! {
    /// A payment provider.
    pub enum PaymentProvider {
        /// The embedded provider. Its money is simulated.
        Ledger = "ledger",
        /// Stripe.
        Stripe = "stripe",
    }
}

text_enum! {
    /// The type of a payment method.
    pub enum PaymentMethodType {
        /// A credit or debit card.
        Card = "card",
    }
}

/// The public part of a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Card {
    /// The brand, for example `visa`.
    pub brand: String,
    /// The last four digits of the number.
    pub last4: String,
    /// The month in which the card expires, from 1 to 12.
    pub exp_month: u8,
    /// The year in which the card expires.
    pub exp_year: u16,
    /// The country of the issuer, as two letters. `null` if unknown.
    pub country: Option<String>,
    /// How the card is funded: `credit`, `debit`, `prepaid` or `unknown`.
    pub funding: String,
}

impl Card {
    /// Returns the first instant at which the card has expired. Returns `None` if its month is invalid.
    #[must_use]
    pub fn expires_at(&self) -> Option<Timestamp> {
        end_of_month(self.exp_year, self.exp_month)
    }

    /// Returns whether the card has expired. It is valid until the end of its last month, in UTC.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        (self.exp_year, self.exp_month) < month_of(now)
    }
}

/// A payment method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaymentMethod {
    /// The id of the method at the provider.
    pub id: String,
    /// The customer that the method is attached to. `null` if it is attached to none.
    pub customer_id: Option<CustomerId>,
    /// The type of the method.
    #[serde(rename = "type")]
    pub kind: PaymentMethodType,
    /// Whether the method is charged unless a subscription has its own.
    pub is_default: bool,
    /// The card.
    pub card: Card,
    /// Whether the card has expired.
    pub expired: bool,
    /// When the method was created.
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_valid_until_the_end_of_its_last_month() {
        let card = Card {
            brand: "visa".to_owned(),
            last4: "4242".to_owned(),
            exp_month: 12,
            exp_year: 2034,
            country: None,
            funding: "credit".to_owned(),
        };
        for (now, expected) in [
            ("2034-11-30T00:00:00Z", false),
            ("2034-12-31T23:59:59Z", false),
            ("2035-01-01T00:00:00Z", true),
        ] {
            let now = Timestamp::parse_rfc3339(now).unwrap();
            assert_eq!(card.has_expired(now), expected);
            assert_eq!(card.expires_at().unwrap() <= now, expected);
        }
    }
}
