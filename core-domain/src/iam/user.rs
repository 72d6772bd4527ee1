//! Users and their accounts, which are their ways to authenticate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PasswordHash;
use crate::kernel::{
    AccountId, Email, Line, PersonName, Reason, Timestamp, UserId, record, update_command,
};

/// The provider name of accounts with an email address and a password.
pub const PASSWORD_PROVIDER: &str = "credential";

/// A person who can sign in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct User {
    /// The unique id of the user.
    pub id: UserId,
    /// The display name of the user; may be empty.
    pub name: Line<0, 255>,
    /// The email address, unique among all users.
    pub email: Email,
    /// Whether the user has proved that they receive mail at the address.
    pub email_verified: bool,
    /// The URL of the user's picture; `null` if none is set.
    pub image: Option<Line<0, 2048>>,
    /// The time at which the user was banned; `None` if the user is not banned.
    #[serde(skip)]
    pub banned_at: Option<Timestamp>,
    /// The reason for the ban, if an operator gave one.
    #[serde(skip)]
    pub ban_reason: Option<Reason>,
    /// The time at which the user signed up.
    pub created_at: Timestamp,
    /// The time of the last change of the record.
    pub updated_at: Timestamp,
}

record! {
    User as "user" by id, asked UserQuery;
    audited, touched updated_at;
}

update_command! {
    /// Changes the profile of a user. Omitted fields stay unchanged.
    pub struct UpdateUser for User {
        set {
            /// The new display name; may be empty.
            name: PersonName,
        }
        optional {
            /// The URL of the user's picture; `null` removes it.
            image: Line<0, 2048>,
        }
    }
}

/// Bans a user, who can then no longer sign in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Ban {
    /// The reason for the ban, for operators. Default: none.
    pub reason: Option<Reason>,
}

/// Queries on users.
#[derive(Clone, Debug, PartialEq)]
pub enum UserQuery {
    /// The user with this email address.
    WithEmail(Email),
    /// The users with these email addresses.
    WithEmails(Vec<Email>),
}

/// A way in which a user authenticates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Account {
    /// The unique id of the account.
    pub id: AccountId,
    /// The user who owns the account.
    pub user_id: UserId,
    /// The identity provider; [`PASSWORD_PROVIDER`] for a password.
    pub provider: String,
    /// The hash of the password; `None` for accounts of other providers.
    #[serde(skip)]
    pub password_hash: Option<PasswordHash>,
    /// The time at which a mailed link set the password. `None` after the owner used a second factor or chose another
    /// password. Until then, the password proves no more than the link.
    #[serde(skip)]
    pub set_by_link_at: Option<Timestamp>,
    /// The time at which the account was created.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

record! {
    Account as "account" by id, asked AccountQuery;
    audited, touched updated_at;
}

/// Queries on accounts.
#[derive(Clone, Debug, PartialEq)]
pub enum AccountQuery {
    /// The password account of the user.
    PasswordOf(UserId),
}
