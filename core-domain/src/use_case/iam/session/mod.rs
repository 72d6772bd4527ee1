//! Sessions: created by sign-ins, looked up by their token, and listed and ended by their owner.

mod challenge;
mod lookup;
mod own;

pub use challenge::{
    Challenged, SignInOutcome, challenge_methods, distrust_device, list_trusted_devices,
    reauthenticate_by_password, remove_expired_challenges, remove_expired_trust,
};
pub(super) use challenge::{
    FirstFactor, begin_or_challenge, complete_challenge, find_challenge, note_proof,
    reauthenticate, trust_device, trust_no_device,
};
pub use lookup::{ActiveMembership, SessionDetails, details, details_by_token, extend, is_known};
pub(super) use lookup::{details_by_id, grants_end};
pub(super) use own::{Kept, as_user, begin, begin_for_client, end_all, ensure_not_banned};
pub use own::{SignedIn, list, remove_expired, revoke, revoke_all, revoke_named, sign_out};
