//! Organizations: creating them, choosing which one a session acts for, letting go of a platform that is gone.

mod active;
mod bootstrap;
mod create;
mod invitation;
mod member;
mod own;
mod own_membership;
mod read;
mod refusal;
mod release;

pub(in crate::use_case) use active::{set_active, set_active_if_none};
pub use bootstrap::{Bootstrapped, bootstrap};
pub(in crate::use_case) use create::{NewOrganization, create, slug_is_taken};
pub use invitation::{
    Answered, InvitationDetails, NewInvitation, accept_invitation, cancel, cancel_invitation,
    get_invitation, invite, invite_to, list_invitations, list_of, list_own, reject_invitation,
};
pub use member::{
    MemberName, MemberOfOrganization, leave, list_members, member_with_user, no_such_member,
    remove_member, update_member_role,
};
pub(in crate::use_case) use own::delete_own;
pub use own::{
    FoundOrganization, NewOwnOrganization, OrganizationName, activate, check_slug, create_own,
    deactivate, find_own, list_own_organizations, update_own,
};
pub use own_membership::{OwnMembership, own_membership};
pub use read::{by_slug, create_for_owner};
pub(in crate::use_case) use release::release_platform;
