//! Sessions: created by sign-ins, looked up by their token, and listed and ended by their owner.

mod begin;
mod challenge;
mod lookup;
mod own;

pub use begin::SignedIn;
pub(super) use begin::{as_user, create, create_for_client, ensure_not_banned};
pub(super) use challenge::{
    FirstFactor, begin_or_challenge, complete_challenge, find_challenge, reauthenticate,
    record_proof, remove_trusted_devices, trust_device,
};
pub use challenge::{
    PendingSignIn, SignInOutcome, challenge_methods, list_trusted_devices,
    reauthenticate_by_password, remove_expired_challenges, remove_expired_trust,
    remove_trusted_device,
};
pub use lookup::{ActiveMembership, SessionDetails, details, details_by_token, exists, extend};
pub(super) use lookup::{details_by_id, first_grant_expiry};
pub(super) use own::{KeptSession, end_all};
pub use own::{list, remove_expired, revoke, revoke_all, revoke_by_token_or_id, sign_out};
