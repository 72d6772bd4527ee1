//! The operator organization: made once in the life of an installation.

use super::organization::{
    NewOrganization, create_organization_with_owner, set_active_organization,
};
use crate::iam::{
    MAX_SESSIONS, Organization, OrganizationQuery, OrganizationType, SessionQuery, User, UserQuery,
};
use crate::kernel::{Code, Context, Email, Error, Name, Result, Slug, UserId};
use crate::port::{Record, Stored, UnitOfWork};

/// Who shall own the operator organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody yet: the service key alone operates the installation.
    Nobody,
    /// The user with this id.
    User(UserId),
    /// The user with this address.
    Email(Email),
}

/// The operator organization to be made.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    /// What people call it.
    pub name: Name,
    /// Its name in addresses.
    pub slug: Slug,
    /// Its owner.
    pub owner: Owner,
}

/// The operator organization was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrapped {
    /// The organization.
    pub organization: Stored<Organization>,
    /// Its owner, if it has one.
    pub owner: Option<UserId>,
}

/// Makes the operator organization. Sessions of the owner that act for no organization act for this one at once.
///
/// # Errors
/// `FORBIDDEN` or `UNAUTHORIZED` unless the caller operates the installation; `CONFLICT` when there is one already;
/// `SLUG_TAKEN`; `NOT_FOUND` for an unknown owner.
pub async fn bootstrap(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    input: &Bootstrap,
) -> Result<Bootstrapped> {
    cx.caller.operator()?;
    let operators = OrganizationQuery::OfType(OrganizationType::CoreOperator);
    if uow.organizations().first(&operators).await?.is_some() {
        return Err(Error::refused(
            Code::Conflict,
            "The operator organization exists already.",
        ));
    }
    let owner = owner_id(uow, &input.owner).await?;
    let new = NewOrganization {
        name: input.name.clone(),
        slug: input.slug.clone(),
        kind: OrganizationType::CoreOperator,
        platform_id: None,
        owner: owner.clone(),
    };
    let organization = create_organization_with_owner(cx, uow, &new).await?;
    if let Some(owner) = &owner {
        act_for(uow, owner, &organization).await?;
    }
    Ok(Bootstrapped {
        organization,
        owner,
    })
}

async fn owner_id(uow: &mut dyn UnitOfWork, owner: &Owner) -> Result<Option<UserId>> {
    match owner {
        Owner::Nobody => Ok(None),
        Owner::User(id) => Ok(Some(id.clone())),
        Owner::Email(email) => {
            let with_email = UserQuery::WithEmail(email.clone());
            let user = uow.users().first(&with_email).await?;
            Ok(Some(user.ok_or(Error::NotFound(User::KIND))?.id.clone()))
        }
    }
}

async fn act_for(
    uow: &mut dyn UnitOfWork,
    owner: &UserId,
    organization: &Organization,
) -> Result<()> {
    let now = uow.now().await?;
    let active = SessionQuery::ActiveOf(owner.clone(), now);
    for session in uow.sessions().list(&active, MAX_SESSIONS).await? {
        if session.active_organization_id.is_none() {
            set_active_organization(uow, &session.id, &organization.id).await?;
        }
    }
    Ok(())
}
