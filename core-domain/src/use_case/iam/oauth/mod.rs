//! Signing in from a program (RFC 8628), and the tokens of such a session.
//!
//! A refused grant changes records as well (when a device asked last, that a family of tokens ended), so the use cases answer
//! it as a value, and the unit of work is committed.

mod decide;
mod device;
mod exchange;
mod grant;
mod sweep;
mod tokens;

pub(super) use decide::revoke_approvals;
pub use decide::{decide, list_approved, pending, revoke_approval};
pub use device::{DeviceCodes, has_device_code, redeem, request};
pub use exchange::{has_refresh_token, refresh};
pub use grant::{GrantOutcome, GrantRefusal};
pub use sweep::{remove_expired_devices, remove_expired_tokens};
pub use tokens::TokenPair;
