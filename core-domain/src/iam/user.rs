//! People, and how they prove who they are.

use crate::kernel::{AccountId, Email, Timestamp, UserId};
use crate::port::Record;

/// The provider of accounts that are an e-mail address with a password.
pub const CREDENTIAL: &str = "credential";

/// A person.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// The user's id.
    pub id: UserId,
    /// What they call themselves; may be empty.
    pub name: String,
    /// Their address; no two users share one.
    pub email: Email,
    /// Whether they proved that they read mail at the address.
    pub email_verified: bool,
    /// Address of a picture.
    pub image: Option<String>,
    /// When they signed up.
    pub created_at: Timestamp,
    /// When the record was last changed.
    pub updated_at: Timestamp,
}

impl Record for User {
    type Query = UserQuery;
    const KIND: &'static str = "user";

    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// Questions about users.
#[derive(Clone, Debug, PartialEq)]
pub enum UserQuery {
    /// The one with this address.
    WithEmail(Email),
}

/// A way a user proves who they are.
#[derive(Clone, PartialEq)]
pub struct Account {
    /// The account's id.
    pub id: AccountId,
    /// Whose it is.
    pub user_id: UserId,
    /// Who vouches for it; [`CREDENTIAL`] for a password.
    pub provider: String,
    /// The password's hash (PHC string), for a password account.
    pub password_hash: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

// Hashes stay out of logs.
impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account")
            .field("id", &self.id)
            .field("user_id", &self.user_id)
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

impl Record for Account {
    type Query = AccountQuery;
    const KIND: &'static str = "account";

    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// Questions about accounts.
#[derive(Clone, Debug, PartialEq)]
pub enum AccountQuery {
    /// The user's password account.
    PasswordOf(UserId),
}
