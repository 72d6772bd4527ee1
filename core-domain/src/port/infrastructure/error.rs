//! What a provider call can answer besides success.

use crate::port::Cause;

/// What a provider call can answer besides success. Tenants see the text of it, as a job's error and a deployment's: what
/// they must not see belongs into the [`Cause`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// Nothing happened, and it may work later.
    #[error("the provider failed for now")]
    Transient(#[source] Cause),
    /// A part is done. The same call can be sent again at once and continues with the rest.
    #[error("the provider completed a part of the request")]
    Unfinished,
    /// The provider asks to wait.
    #[error("the provider asks to wait {retry_after_seconds} s")]
    Throttled {
        /// How long.
        retry_after_seconds: u64,
    },
    /// No answer after the request was sent: it may or may not have happened. Look before trying again.
    #[error("the provider did not answer")]
    OutcomeUnknown(#[source] Cause),
    /// It will never work like this; the text says why, to the tenant.
    #[error("the provider refused: {0}")]
    Permanent(String),
    /// What the provider holds is damaged: nothing works before an operator has mended it.
    #[error("the provider is out of order; its operator has to mend it")]
    Damaged(#[source] Cause),
    /// The name belongs to something that is not ours.
    #[error("the name {0} is taken by something else")]
    NameTaken(String),
}
