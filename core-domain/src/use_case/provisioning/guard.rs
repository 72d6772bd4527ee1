//! Whether a job is still its holder's: asked right before each effect.

use std::fmt::Debug;

use async_trait::async_trait;

use super::step_error::StepError;

/// Makes sure that a job is still its holder's.
#[async_trait]
pub(super) trait Guard: Debug + Send + Sync {
    /// Reads the fence from the store, after the call.
    ///
    /// # Errors
    /// [`StepError::LeaseLost`] when it is not, another one when that could not be read.
    async fn check(&self) -> Result<(), StepError>;
}
