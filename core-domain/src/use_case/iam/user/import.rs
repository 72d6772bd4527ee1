//! Import of users from another installation, with their password hashes.

use std::collections::BTreeSet;

use serde_json::json;

use crate::access::{AuditEvent, OperatorScope, audited, unaudited, unowned_records};
use crate::iam::{Account, PASSWORD_PROVIDER, PasswordHash, User, UserQuery};
use crate::kernel::{AccountId, Context, Email, Line, PersonName, Result, Timestamp, UserId};
use crate::port::UnitOfWork;

/// A user to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedUser {
    /// The id of the user. Default: a new id.
    pub id: Option<UserId>,
    /// The display name; may be empty.
    pub name: PersonName,
    /// The email address, which must be unique.
    pub email: Email,
    /// Whether the user has proved that they receive mail at the address.
    pub email_verified: bool,
    /// The URL of the user's picture.
    pub image: Option<Line<0, 2048>>,
    /// The time at which the user signed up. Default: now.
    pub created_at: Option<Timestamp>,
    /// The password hash, in a format that the installation's hasher reads; `None` for a user without a password.
    pub password_hash: Option<PasswordHash>,
}

/// The outcome for one user of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportOutcome {
    /// The user was imported with this id. In a preview, `None` stands for a new id.
    Imported(Option<UserId>),
    /// Another user, or an earlier one of the batch, has the address. Nothing was changed.
    EmailTaken,
    /// Another user, or an earlier one of the batch, has the id. Nothing was changed.
    IdTaken,
}

/// Imports users and returns the outcome for each, in the same order. Existing users stay unchanged.
///
/// # Errors
/// `CONFLICT`, as [`crate::kernel::Error::Store`], if one of the addresses signed up at the same time. The call can be
/// repeated.
pub async fn import(
    cx: &Context,
    _: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    batch: &[ImportedUser],
) -> Result<Vec<ImportOutcome>> {
    let now = uow.now().await?;
    let mut known = KnownUsers::of(uow, batch).await?;
    let mut outcomes = Vec::with_capacity(batch.len());
    let (mut users, mut accounts) = (Vec::new(), Vec::new());
    for person in batch {
        if let Some(refused) = known.find_conflict(person) {
            outcomes.push(refused);
            continue;
        }
        known.add(person);
        let id = person.id.clone();
        let id = id.unwrap_or_else(|| UserId::generate(now, cx.entropy.as_ref()));
        accounts.extend(account(cx, person, &id, now));
        outcomes.push(ImportOutcome::Imported(Some(id.clone())));
        users.push(user(person, id, now));
    }
    // One audit entry, that of the import, covers user and account.
    for user in &users {
        let account = accounts.iter().find(|account| account.user_id == user.id);
        audited::record_event(cx, uow, import_event(user, account)).await?;
    }
    if !users.is_empty() {
        unaudited::insert_many(uow, users).await?;
    }
    if !accounts.is_empty() {
        unaudited::insert_many(uow, accounts).await?;
    }
    Ok(outcomes)
}

/// Returns the outcomes that [`import`] would have, without importing. `earlier` contains the users of previous
/// batches, which the store does not know. The users of this batch are added to it.
///
/// # Errors
/// Only those of the store.
pub async fn preview_import(
    _: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    earlier: &mut KnownUsers,
    batch: &[ImportedUser],
) -> Result<Vec<ImportOutcome>> {
    let known = KnownUsers::of(uow, batch).await?;
    let mut outcomes = Vec::with_capacity(batch.len());
    for person in batch {
        let refused = known
            .find_conflict(person)
            .or_else(|| earlier.find_conflict(person));
        outcomes.push(refused.unwrap_or_else(|| {
            earlier.add(person);
            ImportOutcome::Imported(person.id.clone())
        }));
    }
    Ok(outcomes)
}

/// Email addresses and ids that are already in use.
#[derive(Clone, Debug, Default)]
pub struct KnownUsers {
    emails: BTreeSet<Email>,
    ids: BTreeSet<UserId>,
}

impl KnownUsers {
    async fn of(uow: &mut dyn UnitOfWork, batch: &[ImportedUser]) -> Result<Self> {
        let limit = u32::try_from(batch.len()).unwrap_or(u32::MAX);
        let emails = batch.iter().map(|person| person.email.clone()).collect();
        let with_emails = UserQuery::WithEmails(emails);
        let users = unowned_records::<User>(uow)
            .list(&with_emails, limit)
            .await?;
        let emails = users.iter().map(|user| user.email.clone()).collect();
        let ids: Vec<&str> = batch
            .iter()
            .filter_map(|person| person.id.as_ref().map(UserId::as_str))
            .collect();
        let users = unowned_records::<User>(uow).get_many(&ids).await?;
        let ids = users.iter().map(|user| user.id.clone()).collect();
        Ok(Self { emails, ids })
    }

    /// Returns the reason why a user cannot be imported; `None` if there is none.
    fn find_conflict(&self, person: &ImportedUser) -> Option<ImportOutcome> {
        if self.emails.contains(&person.email) {
            return Some(ImportOutcome::EmailTaken);
        }
        let id = person.id.as_ref();
        id.is_some_and(|id| self.ids.contains(id))
            .then_some(ImportOutcome::IdTaken)
    }

    fn add(&mut self, person: &ImportedUser) {
        self.emails.insert(person.email.clone());
        self.ids.extend(person.id.clone());
    }
}

fn user(person: &ImportedUser, id: UserId, now: Timestamp) -> User {
    User {
        id,
        name: person.name.clone().into(),
        email: person.email.clone(),
        email_verified: person.email_verified,
        image: person.image.clone(),
        banned_at: None,
        ban_reason: None,
        created_at: person.created_at.unwrap_or(now),
        updated_at: now,
    }
}

fn account(cx: &Context, person: &ImportedUser, user: &UserId, now: Timestamp) -> Option<Account> {
    Some(Account {
        id: AccountId::generate(now, cx.entropy.as_ref()),
        user_id: user.clone(),
        provider: PASSWORD_PROVIDER.to_owned(),
        password_hash: Some(person.password_hash.clone()?),
        set_by_link_at: None,
        created_at: now,
        updated_at: now,
    })
}

fn import_event(user: &User, account: Option<&Account>) -> AuditEvent {
    AuditEvent {
        action: "user.imported",
        entity_id: user.id.to_string(),
        details: Some(json!({
            "email": user.email,
            "emailVerified": user.email_verified,
            "accountId": account.map(|account| &account.id),
        })),
        ..AuditEvent::default()
    }
}
