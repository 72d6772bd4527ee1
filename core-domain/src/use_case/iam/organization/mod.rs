//! Organizations: their creation and deletion, members, invitations, and the active organization of a session.

mod bootstrap;
mod invitation;
mod manage;
mod member;

pub use bootstrap::{BootstrapResult, bootstrap};
pub use invitation::{
    Cancellation, InvitationAnswer, InvitationDetails, NewInvitation, accept_invitation,
    cancel_invitation, get_invitation, invite, list_invitations, list_received, reject_invitation,
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
    MemberOfOrganization, MemberOrder, MemberRef, MembersSlice, leave, list_members,
    list_members_slice, member_not_found, member_with_user, own_member, remove_member,
    update_member_role,
};
