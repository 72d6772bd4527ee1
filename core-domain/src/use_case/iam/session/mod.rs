//! Sessions: begun by every way to sign in, looked up by their token, listed and ended by their owner.

mod begin;
mod challenge;
mod expired;
mod lookup;
mod own;
mod reauthenticate;
mod trusted_device;

pub use begin::SignedIn;
pub(super) use begin::{as_user, begin, begin_for_client, ensure_not_banned};
pub use challenge::{Challenged, SignInOutcome, challenge_methods, remove_expired_challenges};
pub(super) use challenge::{FirstFactor, begin_or_challenge, complete_challenge, find_challenge};
pub use expired::remove_expired;
pub use lookup::{ActiveMembership, SessionDetails, details, details_by_token, extend, is_known};
pub(super) use lookup::{details_by_id, grants_end};
pub(super) use own::{Kept, end_all};
pub use own::{list, revoke, revoke_all, revoke_named, sign_out};
pub use reauthenticate::reauthenticate_by_password;
pub(super) use reauthenticate::{note_proof, reauthenticate};
pub use trusted_device::{distrust_device, list_trusted_devices, remove_expired_trust};
pub(super) use trusted_device::{trust_device, trust_no_device};
