//! Organizations: their creation and deletion, members, invitations, and the active organization of a session.

mod bootstrap;
mod invitation;
mod manage;
mod member;

pub use bootstrap::{Bootstrapped, bootstrap};
pub use invitation::{
    Answered, Cancellation, InvitationDetails, NewInvitation, accept_invitation, cancel_invitation,
    get_invitation, invite, list_invitations, list_own, reject_invitation,
};
pub(in crate::use_case) use manage::{
    NewOrganization, create, delete, release_platform, set_active, set_active_if_none,
    slug_is_taken,
};
pub use manage::{
    NewOwnOrganization, OwnOrganization, activate, check_slug, create_for_owner, create_own,
    deactivate, list_own_organizations, update,
};
pub(in crate::use_case) use member::find_other_member;
pub use member::{
    MemberName, MemberOfOrganization, MemberOrder, MembersSlice, leave, list_members,
    member_with_user, no_such_member, own_member, remove_member, slice_members, update_member_role,
};
