//! Errors of API calls, and their meaning for the use cases of billing.

use std::fmt;
use std::time::Duration;

use core_domain::kernel::Secret;
use core_domain::port::{Cause, Decline, PaymentsError};
use http::StatusCode;
use serde::Deserialize;

/// Maximum length of a message of the API that is repeated, in characters.
const MAX_MESSAGE_CHARS: usize = 300;

/// Codes of issuers after which a later attempt with the same card is pointless.
const HARD_CODES: [&str; 4] = ["lost_card", "stolen_card", "pickup_card", "expired_card"];

/// The advice of an issuer not to charge the card again.
const DO_NOT_TRY_AGAIN: &str = "do_not_try_again";

/// Codes of a charge that the owner of the card must confirm.
const AUTHENTICATION_CODES: [&str; 2] = [
    "authentication_required",
    "invoice_payment_intent_requires_action",
];

/// The error of an API call.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The request was not sent.
    #[error("the request was not sent")]
    Unsent(#[source] Cause),
    /// The API wants fewer requests; contains the time to wait.
    #[error("the API asks to wait {} s", .0.as_secs())]
    Throttled(Duration),
    /// The request was sent, but no usable response was received.
    #[error("no usable response was received")]
    NoResponse {
        /// Whether the request only reads.
        reads: bool,
        /// Whether the same request can be sent again at once.
        is_retryable: bool,
        /// The reason, or the unusable response.
        #[source]
        cause: Cause,
    },
    /// The failure of the server is stored under the key of the request. It never succeeds under this key.
    #[error("the failure is stored under the key of the request")]
    Kept(#[source] Cause),
    /// Another request changes the same object, or has the same key.
    #[error("another request is running")]
    Conflict,
    /// The API refused the request.
    #[error("the API refused: {0}")]
    Refused(Box<Refusal>),
    /// The response belongs to another mode than the key.
    #[error("the response belongs to another mode than the key")]
    OtherMode,
    /// The request is not possible, for example because of its amount.
    #[error("{0}")]
    Impossible(String),
}

/// The error in the body of a response.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ApiError {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) code: Option<String>,
    pub(crate) decline_code: Option<String>,
    pub(crate) advice_code: Option<String>,
    message: Option<String>,
    param: Option<String>,
    payment_intent: Option<IntentSecret>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct IntentSecret {
    client_secret: Option<SecretText>,
}

/// A text of a response that must not appear in logs.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "String")]
pub(crate) struct SecretText(pub(crate) Secret);

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(Secret::new(text))
    }
}

impl ApiError {
    /// Returns whether the owner of the card must confirm the charge.
    pub(crate) fn needs_authentication(&self) -> bool {
        let codes = [&self.code, &self.decline_code];
        let mut codes = codes.into_iter().flatten();
        codes.any(|code| AUTHENTICATION_CODES.contains(&code.as_str()))
    }

    /// Returns the secret with which a browser confirms the charge.
    pub(crate) fn client_secret(&self) -> Option<Secret> {
        let intent = self.payment_intent.as_ref()?;
        intent.client_secret.clone().map(|secret| secret.0)
    }

    /// Returns the reason of the issuer.
    pub(crate) fn decline(&self) -> Decline {
        let codes = [&self.code, &self.decline_code];
        let mut codes = codes.into_iter().flatten();
        let is_hard = codes.any(|code| HARD_CODES.contains(&code.as_str()))
            || self.advice_code.as_deref() == Some(DO_NOT_TRY_AGAIN);
        Decline {
            error_code: self.code.clone().unwrap_or_else(|| self.kind.clone()),
            decline_code: self.decline_code.clone(),
            is_hard,
        }
    }
}

/// The details of a refused request.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// The endpoint as `object.verb`.
    pub(crate) endpoint: &'static str,
    pub(crate) status: StatusCode,
    pub(crate) error: ApiError,
    /// The id of the request at Stripe.
    pub(crate) request_id: String,
}

impl Refusal {
    fn is_access(&self) -> bool {
        [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&self.status)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = &self.error;
        write!(
            f,
            "{} responded with {}",
            self.endpoint,
            self.status.as_u16()
        )?;
        let details = [&error.code, &error.decline_code, &error.param];
        for detail in details.into_iter().flatten() {
            write!(f, ", {}", shorten(detail))?;
        }
        // The message about a wrong key repeats a part of the key.
        if let Some(message) = error.message.as_ref().filter(|_| !self.is_access()) {
            write!(f, ": {}", shorten(message))?;
        }
        write!(f, " (request {})", self.request_id)
    }
}

/// Returns the text on one line, shortened to the maximum length.
fn shorten(text: &str) -> String {
    let fits = text.chars().take(MAX_MESSAGE_CHARS);
    fits.map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl CallError {
    /// Returns whether the API responded that the object does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == StatusCode::NOT_FOUND)
    }

    /// Returns whether the API refused the request because of the state of an object.
    pub(crate) fn is_state(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == StatusCode::BAD_REQUEST)
    }

    /// Returns whether the request had no effect, because it was not sent or not accepted. An earlier request with the same
    /// key may have had one.
    pub(crate) const fn is_unsent(&self) -> bool {
        matches!(self, Self::Unsent(_) | Self::Throttled(_))
    }

    /// Returns whether the same request, with the same key, can succeed a moment later.
    pub(crate) const fn is_retryable(&self) -> bool {
        match self {
            Self::NoResponse { is_retryable, .. } => *is_retryable,
            Self::Conflict => true,
            _ => false,
        }
    }

    /// Returns the error of a declined card.
    pub(crate) fn card_error(&self) -> Option<&ApiError> {
        match self {
            Self::Refused(refusal) if refusal.status == StatusCode::PAYMENT_REQUIRED => {
                Some(&refusal.error)
            }
            _ => None,
        }
    }
}

impl From<CallError> for PaymentsError {
    fn from(error: CallError) -> Self {
        if let Some(card) = error.card_error() {
            return Self::Declined(card.decline());
        }
        match error {
            CallError::Unsent(cause) => Self::Unavailable(cause),
            CallError::Throttled(wait) => Self::Throttled(wait),
            CallError::NoResponse {
                reads: true, cause, ..
            } => Self::Unavailable(cause),
            CallError::NoResponse { cause, .. } | CallError::Kept(cause) => Self::Unknown(cause),
            CallError::Conflict => Self::Conflict,
            CallError::OtherMode => {
                Self::Unauthorized("the key of Stripe belongs to another mode".to_owned())
            }
            CallError::Impossible(why) => Self::Invalid(why),
            CallError::Refused(refusal) if refusal.is_access() => {
                tracing::error!(%refusal, "Stripe rejected the key: renew it or add the missing permission");
                Self::Unauthorized(refusal.to_string())
            }
            CallError::Refused(refusal) => {
                tracing::warn!(%refusal, "Stripe refused a request");
                Self::Invalid(refusal.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(json: &str) -> ApiError {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn lost_cards_and_the_advice_of_the_issuer_end_further_attempts() {
        for (json, is_hard) in [
            (
                r#"{"type":"card_error","code":"card_declined","decline_code":"generic_decline"}"#,
                false,
            ),
            (
                r#"{"type":"card_error","code":"card_declined","decline_code":"lost_card"}"#,
                true,
            ),
            (r#"{"type":"card_error","code":"expired_card"}"#, true),
            (
                r#"{"type":"card_error","code":"card_declined","advice_code":"do_not_try_again"}"#,
                true,
            ),
            (
                r#"{"type":"card_error","code":"card_declined","advice_code":"try_again_later"}"#,
                false,
            ),
        ] {
            assert_eq!(error(json).decline().is_hard, is_hard, "{json}");
        }
    }

    #[test]
    fn messages_are_shortened_and_those_about_the_key_are_left_out() {
        let long = "x".repeat(1_000);
        let refusal = |status| Refusal {
            endpoint: "invoice.pay",
            status,
            error: error(&format!(
                r#"{{"type":"invalid_request_error","message":"{long}"}}"#
            )),
            request_id: "req_1".to_owned(),
        };
        let shown = refusal(StatusCode::BAD_REQUEST).to_string();
        assert!(
            shown.len() < 400 && shown.contains("xxx") && shown.contains("req_1"),
            "{shown}"
        );
        assert!(
            !refusal(StatusCode::UNAUTHORIZED)
                .to_string()
                .contains("xxx")
        );
    }

    #[test]
    fn secrets_of_charges_are_not_printed() {
        let json = r#"{"type":"card_error","code":"authentication_required","payment_intent":{"client_secret":"pi_1_secret_2"}}"#;
        let error = error(json);
        assert!(error.needs_authentication());
        assert_eq!(error.client_secret(), Some(Secret::new("pi_1_secret_2")));
        assert!(!format!("{error:?}").contains("pi_1_secret_2"));
    }
}
