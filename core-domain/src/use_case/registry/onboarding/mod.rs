//! Onboarding: a person asks for a platform, a job creates it.

mod progress;
mod read;
mod start;

pub(super) use progress::{create_onboarded, record_event};
pub use read::{OnboardingView, get, slug_is_available};
pub use start::{ProvisionOnboarding, start, start_as};
