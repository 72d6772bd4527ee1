//! Sign-in of programs (RFC 8628), and the tokens of their sessions.
//!
//! Even a refused token request changes records: the time of the last poll, or the end of a token family. Therefore the
//! use cases return a refusal as a value, and the unit of work is committed.

mod device;
mod token;

pub(super) use device::revoke_approvals;
pub use device::{
    DeviceCodes, decide, has_device_code, list_approved, pending, redeem, request, revoke_approval,
};
pub use token::{
    TokenOutcome, TokenPair, TokenRefusal, has_refresh_token, refresh, remove_expired_devices,
    remove_expired_tokens,
};
