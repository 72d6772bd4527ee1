//! People, and how they prove who they are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PasswordHash;
use crate::kernel::{
    AccountId, Email, Line, PersonName, Reason, Timestamp, UserId, record, update_command,
};

/// The provider of accounts that are an e-mail address with a password.
pub const CREDENTIAL: &str = "credential";

/// A person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct User {
    /// The user's id.
    pub id: UserId,
    /// What they call themselves; may be empty.
    pub name: Line<0, 255>,
    /// Their address; no two users share one.
    pub email: Email,
    /// Whether they proved that they read mail at the address.
    pub email_verified: bool,
    /// Address of a picture.
    pub image: Option<Line<0, 2048>>,
    /// Since when they are kept out, if they are.
    #[serde(skip)]
    pub banned_at: Option<Timestamp>,
    /// Why they are kept out, if an operator said so.
    #[serde(skip)]
    pub ban_reason: Option<Reason>,
    /// When they signed up.
    pub created_at: Timestamp,
    /// When the record was last changed.
    pub updated_at: Timestamp,
}

record! {
    User as "user" by id, asked UserQuery;
    audited, touched updated_at;
}

update_command! {
    /// Changes what a person says of themselves.
    pub struct UpdateUser for User {
        set {
            /// The person's name; may be empty.
            name: PersonName,
        }
        optional {
            /// Address of a picture.
            image: Line<0, 2048>,
        }
    }
}

/// Bans a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Ban {
    /// Why.
    pub reason: Option<Reason>,
}

/// Questions about users.
#[derive(Clone, Debug, PartialEq)]
pub enum UserQuery {
    /// The one with this address.
    WithEmail(Email),
    /// Those with these addresses.
    WithEmails(Vec<Email>),
}

/// A way a user proves who they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Account {
    /// The account's id.
    pub id: AccountId,
    /// Whose it is.
    pub user_id: UserId,
    /// Who vouches for it; [`CREDENTIAL`] for a password.
    pub provider: String,
    /// The password's hash, for a password account.
    #[serde(skip)]
    pub password_hash: Option<PasswordHash>,
    /// When a link that was sent by mail set the password. `None` once its owner showed a second factor or chose another
    /// password: until then the password is worth no more than the link.
    #[serde(skip)]
    pub set_by_link_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

record! {
    Account as "account" by id, asked AccountQuery;
    audited, touched updated_at;
}

/// Questions about accounts.
#[derive(Clone, Debug, PartialEq)]
pub enum AccountQuery {
    /// The user's password account.
    PasswordOf(UserId),
}
