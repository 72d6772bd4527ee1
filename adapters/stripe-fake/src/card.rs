//! Stripe's test cards.

use crate::envelope::Refusal;

/// The end of every charge of a payment method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChargeEnd {
    /// The charge succeeds.
    Paid,
    /// The issuer of the card declines the charge.
    Declined {
        /// The code of the error, for example `card_declined`.
        error_code: String,
        /// The code of the issuer.
        decline_code: Option<String>,
        /// The advice of the issuer, for example `do_not_try_again`.
        advice_code: Option<String>,
    },
    /// The customer must confirm the charge.
    AuthenticationRequired,
    /// The outcome of the charge is not known yet.
    Processing,
}

impl ChargeEnd {
    pub(crate) fn decline(code: &str, decline_code: &str) -> Self {
        Self::Declined {
            error_code: code.to_owned(),
            decline_code: Some(decline_code.to_owned()),
            advice_code: None,
        }
    }

    /// Returns the error of a charge that does not succeed.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Paid | Self::Processing => None,
            Self::AuthenticationRequired => Some(Refusal::card(
                "authentication_required",
                Some("authentication_required"),
            )),
            Self::Declined {
                error_code,
                decline_code,
                advice_code,
            } => {
                let refusal = Refusal::card(error_code, decline_code.as_deref());
                Some(match advice_code.as_deref() {
                    Some(advice) => refusal.member("advice_code", advice),
                    None => refusal,
                })
            }
        }
    }
}

/// A test card.
#[derive(Clone, Copy)]
pub(crate) struct TestCard {
    pub(crate) number: &'static str,
    /// The id of the payment method that stands for the card.
    pub(crate) method: &'static str,
    pub(crate) brand: &'static str,
    /// The code of the error and of the issuer if the card cannot be attached.
    attach: Option<(&'static str, &'static str)>,
    charge: CardCharge,
}

#[derive(Clone, Copy)]
enum CardCharge {
    Paid,
    Declined,
    AuthenticationRequired,
}

const fn card(
    number: &'static str,
    method: &'static str,
    attach: Option<(&'static str, &'static str)>,
    charge: CardCharge,
) -> TestCard {
    TestCard {
        number,
        method,
        brand: "visa",
        attach,
        charge,
    }
}

const fn refused(number: &'static str, method: &'static str, decline: &'static str) -> TestCard {
    let attach = Some(("card_declined", decline));
    card(number, method, attach, CardCharge::Declined)
}

/// The test cards.
const CARDS: [TestCard; 9] = [
    card("4242424242424242", "pm_card_visa", None, CardCharge::Paid),
    TestCard {
        brand: "mastercard",
        ..card(
            "5555555555554444",
            "pm_card_mastercard",
            None,
            CardCharge::Paid,
        )
    },
    refused(
        "4000000000000002",
        "pm_card_chargeDeclined",
        "generic_decline",
    ),
    refused(
        "4000000000009995",
        "pm_card_chargeDeclinedInsufficientFunds",
        "insufficient_funds",
    ),
    refused(
        "4000000000009987",
        "pm_card_chargeDeclinedLostCard",
        "lost_card",
    ),
    refused(
        "4000000000009979",
        "pm_card_chargeDeclinedStolenCard",
        "stolen_card",
    ),
    card(
        "4000000000000069",
        "pm_card_chargeDeclinedExpiredCard",
        Some(("expired_card", "expired_card")),
        CardCharge::Declined,
    ),
    card(
        "4000000000000341",
        "pm_card_chargeCustomerFail",
        None,
        CardCharge::Declined,
    ),
    card(
        "4000002760003184",
        "pm_card_authenticationRequired",
        None,
        CardCharge::AuthenticationRequired,
    ),
];

impl TestCard {
    pub(crate) fn of_number(number: &str) -> Option<Self> {
        CARDS.into_iter().find(|card| card.number == number)
    }

    pub(crate) fn of_method(id: &str) -> Option<Self> {
        CARDS.into_iter().find(|card| card.method == id)
    }

    pub(crate) fn last4(&self) -> &'static str {
        &self.number[self.number.len() - 4..]
    }

    /// Returns the error if the card cannot be attached.
    pub(crate) fn attach_refusal(&self) -> Option<Refusal> {
        let (code, decline_code) = self.attach?;
        Some(Refusal::card(code, Some(decline_code)))
    }

    pub(crate) fn charge_end(&self) -> ChargeEnd {
        match self.charge {
            CardCharge::Paid => ChargeEnd::Paid,
            CardCharge::Declined => ChargeEnd::decline("card_declined", "generic_decline"),
            CardCharge::AuthenticationRequired => ChargeEnd::AuthenticationRequired,
        }
    }
}
