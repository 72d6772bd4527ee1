//! Invitations to an organization: bound to an address, good for 48 hours, answered once.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{
    Email, InvitationId, OrganizationId, Roles, Timestamp, UnixSeconds, UserId, record,
    state_machine, text_enum,
};

/// How long an invitation is good for.
pub const INVITATION_LIFETIME: Duration = Duration::from_secs(48 * 60 * 60);

/// How many invitations of an organization wait for an answer at most.
pub const MAX_PENDING_INVITATIONS: u64 = 100;

/// How many members an organization has at most.
pub const MAX_MEMBERS: u64 = 1_000;

text_enum! {
    /// What became of an invitation.
    pub enum InvitationStatus {
        /// It waits for an answer.
        Pending = "pending",
        /// Its recipient is a member.
        Accepted = "accepted",
        /// Its recipient does not want to be one.
        Rejected = "rejected",
        /// It was taken back.
        Canceled = "canceled",
        /// Nobody answered in time.
        Expired = "expired",
    }
}

state_machine! {
    /// What happens to an invitation. It is created `pending`.
    pub enum InvitationEvent moves InvitationStatus {
        /// The recipient joins.
        Accept = "accept": [Pending] => Accepted, "invitation.accepted";
        /// The recipient declines.
        Reject = "reject": [Pending] => Rejected, "invitation.rejected";
        /// Somebody of the organization takes it back.
        Cancel = "cancel": [Pending] => Canceled, "invitation.canceled";
        /// Its time is up.
        Expire = "expire": [Pending] => Expired, "invitation.expired";
    }
}

/// An invitation (interface: "Invitation").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Invitation {
    /// The invitation's id.
    pub id: InvitationId,
    /// The organization.
    pub organization_id: OrganizationId,
    /// Who is invited.
    pub email: Email,
    /// What they would be.
    pub role: Roles,
    /// What became of it.
    pub status: InvitationStatus,
    /// From when on it is good for nothing; Unix seconds.
    #[serde(serialize_with = "UnixSeconds::show")]
    #[schemars(with = "UnixSeconds")]
    pub expires_at: Timestamp,
    /// Who invites.
    pub inviter_id: UserId,
    /// When it was made; Unix seconds.
    #[serde(serialize_with = "UnixSeconds::show")]
    #[schemars(with = "UnixSeconds")]
    pub created_at: Timestamp,
}

record! {
    Invitation as "invitation" by id, asked InvitationQuery;
    audited;
}

impl Invitation {
    /// Tells whether the recipient can still answer at this instant.
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.status == InvitationStatus::Pending && now < self.expires_at
    }
}

/// Questions about invitations.
#[derive(Clone, Debug, PartialEq)]
pub enum InvitationQuery {
    /// Those of the organization, newest first.
    OfOrganization(OrganizationId),
    /// Those of the organization that wait for an answer, expired or not.
    PendingOf(OrganizationId),
    /// The one of the organization to this address that waits for an answer, expired or not.
    PendingTo(OrganizationId, Email),
    /// Those to an address that wait for an answer and are good at this instant, newest first.
    OpenTo(Email, Timestamp),
}

/// Invites somebody (interface: `POST /api/core/organizations/{orgId}/invitations`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Invite {
    /// Who is invited.
    pub email: Email,
    /// What they will be.
    #[serde(default = "member")]
    pub role: InvitedRole,
    /// For whom a service invites; a person invites for themselves.
    pub inviter_id: Option<UserId>,
}

text_enum! {
    /// A role that the suite's own route invites to.
    pub enum InvitedRole {
        /// Owns the organization with the others who do.
        Owner = "owner",
        /// Does everything but end the organization.
        Admin = "admin",
        /// Looks, and deploys.
        Member = "member",
    }
}

const fn member() -> InvitedRole {
    InvitedRole::Member
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::assert_only_table_moves;

    proptest! {
        #[test]
        fn an_invitation_is_answered_once(
            events in prop::collection::vec(any::<InvitationEvent>(), 0..8),
        ) {
            assert_only_table_moves(InvitationStatus::Pending, &events);
        }
    }
}
