//! Invitations to an organization: bound to an address, good for 48 hours, answered once.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use super::TokenHash;
use crate::kernel::{
    Email, Entropy, InvitationId, OrganizationId, Roles, Secret, TOKEN_LENGTH, Timestamp,
    UnixSeconds, UserId, record, secret_token, state_machine, text_enum,
};

/// How long an invitation is good for.
pub const INVITATION_LIFETIME: Duration = Duration::from_secs(48 * 60 * 60);

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
    /// The hash of the secret in the mailed link. `None` once the invitation is closed, and for invitations that were created
    /// before there were secrets.
    #[serde(skip)]
    pub secret_hash: Option<TokenHash>,
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

/// An invitation as its recipient names it: `<id>`, or `<id>.<secret>` as in the mailed link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvitationRef {
    id: InvitationId,
    secret: Option<Secret>,
}

impl InvitationRef {
    /// Names an invitation with a new secret.
    #[must_use]
    pub fn generate(id: InvitationId, entropy: &dyn Entropy) -> Self {
        let secret = secret_token(entropy, TOKEN_LENGTH);
        Self {
            id,
            secret: Some(Secret::new(secret)),
        }
    }

    /// Parses the text of a request; `None` if it cannot name an invitation.
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

    /// The id of the invitation.
    #[must_use]
    pub const fn id(&self) -> &InvitationId {
        &self.id
    }

    /// The hash of the secret.
    #[must_use]
    pub fn secret_hash(&self) -> Option<TokenHash> {
        let secret = self.secret.as_ref();
        secret.map(|secret| TokenHash::of(secret.expose()))
    }

    /// The text with the secret, for links and forms.
    #[must_use]
    pub fn expose(&self) -> String {
        match &self.secret {
            Some(secret) => format!("{}.{}", self.id, secret.expose()),
            None => self.id.to_string(),
        }
    }

    /// Tells whether the secret is the one that was mailed last.
    #[must_use]
    pub fn has_secret_of(&self, invitation: &Invitation) -> bool {
        let stored = invitation.secret_hash.as_ref();
        stored.is_some_and(|stored| self.secret_hash().as_ref() == Some(stored))
    }
}

impl<'de> Deserialize<'de> for InvitationRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not an invitation"))
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

    #[test]
    fn a_name_without_a_secret_is_an_id_whatever_dots_it_has() {
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
        fn an_invitation_is_answered_once(
            events in prop::collection::vec(any::<InvitationEvent>(), 0..8),
        ) {
            assert_only_table_moves(InvitationStatus::Pending, &events);
        }
    }
}
