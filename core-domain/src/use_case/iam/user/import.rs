//! People taken over from another installation, with the passwords they have there.

use std::collections::BTreeSet;

use serde_json::json;

use crate::access::{AuditEvent, OperatorScope, audited, unaudited, unowned};
use crate::iam::{Account, CREDENTIAL, PasswordHash, User, UserQuery};
use crate::kernel::{AccountId, Context, Email, Line, PersonName, Result, Timestamp, UserId};
use crate::port::UnitOfWork;

/// A person to be taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedUser {
    /// The id they had; a new one unless given.
    pub id: Option<UserId>,
    /// Their name; may be empty.
    pub name: PersonName,
    /// Their address.
    pub email: Email,
    /// Whether they proved that they read mail at the address.
    pub email_verified: bool,
    /// Address of a picture.
    pub image: Option<Line<0, 2048>>,
    /// When they signed up; now unless given.
    pub created_at: Option<Timestamp>,
    /// The hash of their password, of a form that the installation's hasher reads; without one they have no password.
    pub password_hash: Option<PasswordHash>,
}

/// What became of a person of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportOutcome {
    /// They were taken over with this id; in a preview: they would be, with this or a new one.
    Imported(Option<UserId>),
    /// The address has a user, or stands in the batch before. Nothing was changed.
    EmailTaken,
    /// The id has a user, or stands in the batch before. Nothing was changed.
    IdTaken,
}

/// Takes people over; the answer tells in their order what became of each. Who is there already stays as they are.
///
/// # Errors
/// When the store failed; `CONFLICT` as [`crate::kernel::Error::Store`] when somebody signed up with one of the addresses
/// meanwhile: worth another run.
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
        if let Some(refused) = known.refuses(person) {
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
    // Account and user have one entry: that of the import.
    for user in &users {
        let account = accounts.iter().find(|account| account.user_id == user.id);
        audited::event(cx, uow, imported(user, account)).await?;
    }
    if !users.is_empty() {
        unaudited::insert_many(uow, users).await?;
    }
    if !accounts.is_empty() {
        unaudited::insert_many(uow, accounts).await?;
    }
    Ok(outcomes)
}

/// What [`import`] would make of a batch, without making it. `earlier` is who the batches before it would have taken over,
/// whom the store does not know; those of this batch are added.
///
/// # Errors
/// When the store failed.
pub async fn preview_import(
    _: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    earlier: &mut KnownUsers,
    batch: &[ImportedUser],
) -> Result<Vec<ImportOutcome>> {
    let known = KnownUsers::of(uow, batch).await?;
    let mut outcomes = Vec::with_capacity(batch.len());
    for person in batch {
        let refused = known.refuses(person).or_else(|| earlier.refuses(person));
        outcomes.push(refused.unwrap_or_else(|| {
            earlier.add(person);
            ImportOutcome::Imported(person.id.clone())
        }));
    }
    Ok(outcomes)
}

/// Addresses and ids that are somebody's.
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
        let users = unowned::<User>(uow).list(&with_emails, limit).await?;
        let emails = users.iter().map(|user| user.email.clone()).collect();
        let ids: Vec<&str> = batch
            .iter()
            .filter_map(|person| person.id.as_ref().map(UserId::as_str))
            .collect();
        let users = unowned::<User>(uow).get_many(&ids).await?;
        let ids = users.iter().map(|user| user.id.clone()).collect();
        Ok(Self { emails, ids })
    }

    /// Why the person cannot be taken over.
    fn refuses(&self, person: &ImportedUser) -> Option<ImportOutcome> {
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
        provider: CREDENTIAL.to_owned(),
        password_hash: Some(person.password_hash.clone()?),
        set_by_link_at: None,
        created_at: now,
        updated_at: now,
    })
}

fn imported(user: &User, account: Option<&Account>) -> AuditEvent {
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
