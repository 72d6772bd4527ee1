//! The operator organization, which is created once per installation.

use super::manage::set_active_if_none;
use super::manage::{NewOrganization, create};
use crate::access::{ServiceScope, all_unowned, unowned_records};
use crate::iam::{
    Bootstrap, Organization, OrganizationQuery, OrganizationType, Session, SessionQuery, User,
    UserQuery,
};
use crate::kernel::{Code, Context, Error, Name, Record, Result, Slug, Stored, UserId};
use crate::port::UnitOfWork;

/// The result of the creation of the operator organization.
#[derive(Clone, Debug, PartialEq)]
pub struct BootstrapResult {
    /// The new organization.
    pub organization: Stored<Organization>,
    /// The owner of the organization; `None` if it has no members.
    pub owner: Option<UserId>,
}

/// Creates the operator organization. Sessions of the owner that act for no organization switch to this one.
///
/// # Errors
/// - `CONFLICT` if an operator organization exists, or if the email address of the owner is not verified.
/// - `SLUG_TAKEN` if another organization has the slug.
/// - `NOT_FOUND` if the owner does not exist.
pub async fn bootstrap(
    cx: &Context,
    scope: &ServiceScope,
    uow: &mut dyn UnitOfWork,
    command: Bootstrap,
) -> Result<BootstrapResult> {
    let operators = OrganizationQuery::OfType(OrganizationType::CoreOperator);
    if unowned_records::<Organization>(uow)
        .first(&operators)
        .await?
        .is_some()
    {
        return Err(Error::refused(
            Code::Conflict,
            "The operator organization already exists.",
        ));
    }
    let owner = owner_of(uow, &command).await?;
    let new = NewOrganization {
        name: command
            .name
            .map_or_else(default_name, |name| Ok(name.into()))?,
        slug: command.slug.map_or_else(default_slug, Ok)?,
        kind: OrganizationType::CoreOperator,
        platform_id: None,
        logo: None,
        metadata: None,
        owner: owner.clone(),
    };
    let organization = create(cx, scope, uow, new).await?;
    if let Some(owner) = &owner {
        let now = uow.now().await?;
        let active = SessionQuery::ActiveOf(owner.clone(), now);
        for session in all_unowned::<Session>(uow, active).await? {
            set_active_if_none(cx, scope, uow, &session.id, &organization.id).await?;
        }
    }
    Ok(BootstrapResult {
        organization,
        owner,
    })
}

/// Finds the owner. A user with an unverified address is refused, because anyone can sign up with any address.
async fn owner_of(uow: &mut dyn UnitOfWork, command: &Bootstrap) -> Result<Option<UserId>> {
    match (&command.owner_id, &command.email) {
        (Some(id), _) => Ok(Some(id.clone())),
        (None, None) => Ok(None),
        (None, Some(email)) => {
            let with_email = UserQuery::WithEmail(email.clone());
            let user = unowned_records::<User>(uow).first(&with_email).await?;
            let user = user.ok_or(Error::NotFound(User::KIND))?;
            if !user.email_verified {
                let message =
                    "The email address is not verified. Verify it, or name the owner by ownerId.";
                return Err(Error::refused(Code::Conflict, message));
            }
            Ok(Some(user.id.clone()))
        }
    }
}

fn default_name() -> Result<Name> {
    Name::parse("Core Operator").map_err(|error| Error::Internal(error.to_string()))
}

fn default_slug() -> Result<Slug> {
    Slug::parse("core-operator").map_err(|error| Error::Internal(error.to_string()))
}
