//! The second factor: set up, confirmed by its first code, shown at sign-in and when a fresh proof is asked for, taken away.

mod enroll;
mod verify;

pub use enroll::{Enrolment, disable, renew_recovery_codes, set_up, show_uri};
pub use verify::{CompletedSignIn, Proof, Verified, verify_for_sign_in, verify_in_session};
