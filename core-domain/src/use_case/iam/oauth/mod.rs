//! Signing in from a program (RFC 8628), and the tokens of such a session.
//!
//! A refused grant changes records as well (when a device asked last, that a family of tokens ended), so the use cases answer
//! it as a value, and the unit of work is committed.

mod device;
mod token;

pub(super) use device::revoke_approvals;
pub use device::{
    DeviceCodes, decide, has_device_code, list_approved, pending, redeem, request, revoke_approval,
};
pub use token::{
    GrantOutcome, GrantRefusal, TokenPair, has_refresh_token, refresh, remove_expired_devices,
    remove_expired_tokens,
};
