//! Invitations to an organization. An invitation is bound to an email address, expires after 48 hours, and can be
//! answered once.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use super::TokenHash;
use crate::kernel::{
    Email, Entropy, InvitationId, OrganizationId, Roles, Secret, TOKEN_LENGTH, Timestamp,
    UnixSeconds, UserId, record, secret_token, state_machine, text_enum,
};

/// Lifetime of an invitation: 48 hours.
pub const INVITATION_LIFETIME: Duration = Duration::from_secs(48 * 60 * 60);

text_enum! {
    /// The status of an invitation.
    pub enum InvitationStatus {
        /// The invitation waits for an answer.
        Pending = "pending",
        /// The recipient accepted and became a member.
        Accepted = "accepted",
        /// The recipient declined the invitation.
        Rejected = "rejected",
        /// A member of the organization canceled the invitation.
        Canceled = "canceled",
        /// The invitation expired without an answer.
        Expired = "expired",
    }
}

state_machine! {
    /// The lifecycle events of an invitation. A new invitation is `pending`.
    pub enum InvitationEvent moves InvitationStatus {
        /// The recipient accepts and becomes a member.
        Accept = "accept": [Pending] => Accepted, "invitation.accepted";
        /// The recipient declines the invitation.
        Reject = "reject": [Pending] => Rejected, "invitation.rejected";
        /// A member of the organization cancels the invitation.
        Cancel = "cancel": [Pending] => Canceled, "invitation.canceled";
        /// The lifetime of the invitation ends.
        Expire = "expire": [Pending] => Expired, "invitation.expired";
    }
}

/// An invitation to an organization.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Invitation {
    /// The unique id of the invitation.
    pub id: InvitationId,
    /// The organization that the recipient is invited to.
    pub organization_id: OrganizationId,
    /// The email address that the invitation was sent to.
    pub email: Email,
    /// The roles that the recipient gets with the acceptance, comma-separated.
    pub role: Roles,
    /// The current status of the invitation.
    pub status: InvitationStatus,
    /// The hash of the secret in the mailed link. `None` after the invitation is closed, and for invitations from
    /// versions without secrets.
    #[serde(skip)]
    pub secret_hash: Option<TokenHash>,
    /// The time at which the invitation expires, in Unix seconds.
    #[serde(serialize_with = "UnixSeconds::serialize_seconds")]
    #[schemars(with = "UnixSeconds")]
    pub expires_at: Timestamp,
    /// The user who sent the invitation.
    pub inviter_id: UserId,
    /// The time at which the invitation was created, in Unix seconds.
    #[serde(serialize_with = "UnixSeconds::serialize_seconds")]
    #[schemars(with = "UnixSeconds")]
    pub created_at: Timestamp,
}

record! {
    Invitation as "invitation" by id, asked InvitationQuery;
    audited;
}

impl Invitation {
    /// Returns whether the recipient can answer at the given time.
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.status == InvitationStatus::Pending && now < self.expires_at
    }
}

/// An invitation as the recipient names it: `<id>`, or `<id>.<secret>` from the mailed link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvitationRef {
    id: InvitationId,
    secret: Option<Secret>,
}

impl InvitationRef {
    /// Creates a reference to an invitation with a new secret.
    #[must_use]
    pub fn generate(id: InvitationId, entropy: &dyn Entropy) -> Self {
        let secret = secret_token(entropy, TOKEN_LENGTH);
        Self {
            id,
            secret: Some(Secret::new(secret)),
        }
    }

    /// Parses a reference to an invitation; `None` if the text is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_secret = |text: &str| {
            text.len() == TOKEN_LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        let (id, secret) = match text.rsplit_once('.') {
            Some((id, secret)) if is_secret(secret) => (id, Some(Secret::new(secret))),
            _ => (text, None),
        };
        let id = InvitationId::parse(id)?;
        Some(Self { id, secret })
    }

    /// The id of the invitation, without the secret.
    #[must_use]
    pub const fn id(&self) -> &InvitationId {
        &self.id
    }

    /// Returns the hash of the secret; `None` if the reference has no secret.
    #[must_use]
    pub fn secret_hash(&self) -> Option<TokenHash> {
        let secret = self.secret.as_ref();
        secret.map(|secret| TokenHash::of(secret.expose()))
    }

    /// Returns the text with the secret, for links and forms.
    #[must_use]
    pub fn expose(&self) -> String {
        match &self.secret {
            Some(secret) => format!("{}.{}", self.id, secret.expose()),
            None => self.id.to_string(),
        }
    }

    /// Returns whether the secret is the last one that was mailed for this invitation.
    #[must_use]
    pub fn has_secret_of(&self, invitation: &Invitation) -> bool {
        let stored = invitation.secret_hash.as_ref();
        stored.is_some_and(|stored| self.secret_hash().as_ref() == Some(stored))
    }
}

impl<'de> Deserialize<'de> for InvitationRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(
                "expected the id of an invitation, or `<id>.<secret>` from its link",
            )
        })
    }
}

impl JsonSchema for InvitationRef {
    fn schema_name() -> Cow<'static, str> {
        "InvitationRef".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "minLength": 1, "maxLength": 172, "pattern": "^[A-Za-z0-9_.:-]+$",
            "description": "An invitation: `<id>`, or `<id>.<secret>` as in the mailed link. The secret proves that the \
                            caller reads mail at the invited address; without it, the caller's address must be confirmed.",
            "examples": ["019a5b1e-7c20-7d3e-9b4a-5f6c7d8e9f01"],
        })
    }
}

/// Queries on invitations.
#[derive(Clone, Debug, PartialEq)]
pub enum InvitationQuery {
    /// The invitations of the organization, newest first.
    OfOrganization(OrganizationId),
    /// The pending invitations of the organization, including expired ones.
    PendingOf(OrganizationId),
    /// The pending invitation of the organization to this address, even if it has expired.
    PendingTo(OrganizationId, Email),
    /// The pending invitations to an address that have not expired at this time, newest first.
    OpenTo(Email, Timestamp),
}

/// Invites a person to an organization by email.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Invite {
    /// The email address to invite.
    pub email: Email,
    /// The role that the person gets with the acceptance. Default: `member`.
    #[serde(default = "member")]
    pub role: InvitedRole,
    /// The user who invites. A service gives the id of the user it acts for; a person gives their own id.
    /// Default: the calling person.
    pub inviter_id: Option<UserId>,
}

text_enum! {
    /// A role that an invitation can give.
    pub enum InvitedRole {
        /// Owns the organization, together with its other owners.
        Owner = "owner",
        /// Has all permissions except to delete the organization.
        Admin = "admin",
        /// Can read the organization's data and deploy.
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

    #[test]
    fn reference_without_a_secret_is_an_id_even_with_dots() {
        let secret = "s".repeat(TOKEN_LENGTH);
        for (text, id, has_secret) in [
            ("019a-5b1e".to_owned(), "019a-5b1e", false),
            ("9.9.9-none".to_owned(), "9.9.9-none", false),
            (format!("a.b.{secret}"), "a.b", true),
            (format!("a.{secret}x"), &*format!("a.{secret}x"), false),
        ] {
            let name = InvitationRef::parse(&text).unwrap();
            assert_eq!(name.id().as_str(), id);
            assert_eq!(name.secret_hash().is_some(), has_secret, "{text}");
            assert_eq!(name.expose(), text);
            let is_hidden = !format!("{name:?}").contains(&secret);
            assert_eq!(is_hidden, !id.contains(&secret), "{name:?}");
        }
        for none in ["", "a b", &format!(".{secret}")] {
            assert_eq!(InvitationRef::parse(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn invitation_can_be_answered_only_once(
            events in prop::collection::vec(any::<InvitationEvent>(), 0..8),
        ) {
            assert_only_table_moves(InvitationStatus::Pending, &events);
        }
    }
}
