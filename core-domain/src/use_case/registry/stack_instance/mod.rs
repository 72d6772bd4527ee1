//! Instances of stack templates: workspace stacks that jobs activate and take down, and the apps that are made for them.

mod activate;
mod app;
mod deactivate;
pub(super) mod entries;
pub(super) mod follow;

pub(super) use activate::activate_for;
pub use activate::{ActivateStack, activate};
pub use app::{CreateApp, create_app};
pub use deactivate::{DeactivateStack, deactivate};
pub(super) use follow::end_all;
