//! Errors of providers.

use core_domain::port::ProviderError;

/// Returns the error of a provider that does not answer.
pub(crate) fn no_answer_error() -> ProviderError {
    ProviderError::OutcomeUnknown("no answer".into())
}
