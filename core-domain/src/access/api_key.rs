//! Scopes for creating and managing API keys.

use std::marker::PhantomData;

use super::membership::membership_of;
use super::membership::{MembershipScope, OrganizationRef, authorize_membership};
use super::records::covers_unowned;
use super::records::unowned_records;
use super::signed_in::{PersonScope, authorize_person, ensure_not_suspended};
use crate::iam::{ApiKey, ApiKeyOwner, ApiKeyStatus, Organization, organization_key_patterns};
use crate::kernel::{
    ApiKeyId, Code, Context, Error, Membership, OrganizationId, PermissionPattern, PermissionType,
    Record, Result, Role, Stored, UserId, permission,
};
use crate::port::UnitOfWork;

/// The owner of a new API key, and the permissions that its creator can give it. Only [`authorize_new_api_key`] creates
/// one.
#[derive(Clone, Debug)]
pub struct NewApiKeyScope(ApiKeyCreator);

/// The party that a new API key acts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiKeyPurpose<'a> {
    /// The creator alone, in no organization.
    Oneself,
    /// The creator, as a member of this organization.
    Member(&'a OrganizationId),
    /// This organization, independent of its members.
    Organization(&'a OrganizationId),
}

/// The creator of a new key, with their rights where the key will act.
#[derive(Clone, Debug)]
enum ApiKeyCreator {
    /// A person who creates a personal key.
    Oneself { user: PersonScope, operates: bool },
    /// A member who creates a key for themselves.
    Member {
        user: PersonScope,
        organization: Stored<Organization>,
        membership: Membership,
        is_operator: bool,
    },
    /// A caller with `apikey:write` who creates a key for the organization.
    Organization(MembershipScope<permission::ApiKeyWrite>),
}

impl NewApiKeyScope {
    /// Returns the future owner of the key.
    #[must_use]
    pub fn owner(&self) -> ApiKeyOwner {
        match &self.0 {
            ApiKeyCreator::Oneself { user, .. } | ApiKeyCreator::Member { user, .. } => {
                ApiKeyOwner::User(user.user_id().clone())
            }
            ApiKeyCreator::Organization(scope) => {
                ApiKeyOwner::Organization(scope.organization().id.clone())
            }
        }
    }

    /// Returns the organization that the key will act for; `None` for a personal key.
    #[must_use]
    pub fn organization(&self) -> Option<&Stored<Organization>> {
        match &self.0 {
            ApiKeyCreator::Oneself { .. } => None,
            ApiKeyCreator::Member { organization, .. } => Some(organization),
            ApiKeyCreator::Organization(scope) => Some(scope.organization()),
        }
    }

    /// Returns whether the creator has every permission that the pattern matches, in the organization that the key will
    /// act for. Always `false` for a personal key, which acts in no organization.
    #[must_use]
    pub fn has_permissions(&self, pattern: &PermissionPattern) -> bool {
        match &self.0 {
            ApiKeyCreator::Oneself { .. } => false,
            ApiKeyCreator::Member {
                membership: own, ..
            } => own.permissions.covers(pattern.as_str()),
            ApiKeyCreator::Organization(scope) => scope.holds(pattern),
        }
    }

    /// Returns the creator's permissions that match the pattern. A key can be restricted to these.
    #[must_use]
    pub fn permissions_within(&self, pattern: &str) -> Vec<PermissionPattern> {
        let permissions = match &self.0 {
            ApiKeyCreator::Oneself { .. } => return Vec::new(),
            ApiKeyCreator::Member {
                membership: own, ..
            } => own.permissions.clone(),
            ApiKeyCreator::Organization(scope) => scope.permissions(),
        };
        let held = permissions.within([pattern]).patterns();
        let held = held.iter().map(|held| PermissionPattern::parse(held));
        held.filter_map(Result::ok).collect()
    }

    /// Returns whether the creator owns the organization or operates the installation.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        match &self.0 {
            ApiKeyCreator::Oneself { operates, .. } => *operates,
            ApiKeyCreator::Member {
                membership: own,
                is_operator: operates,
                ..
            } => *operates || own.roles.contains(&Role::OWNER),
            ApiKeyCreator::Organization(scope) => scope.is_owner(),
        }
    }
}

/// An API key on which the caller is authorized to do `G`. Only [`authorize_api_key`] creates one.
#[derive(Clone, Debug)]
pub struct ApiKeyScope<G> {
    key: Stored<ApiKey>,
    has_key_permissions: bool,
    is_owner: bool,
    permission: PhantomData<fn() -> G>,
}

impl<G> ApiKeyScope<G> {
    /// The key, as read when the scope was created.
    #[must_use]
    pub const fn key(&self) -> &Stored<ApiKey> {
        &self.key
    }

    /// Returns whether the caller has every permission of the key, and may therefore see a secret of it.
    #[must_use]
    pub const fn holds_scopes(&self) -> bool {
        self.has_key_permissions
    }

    /// Returns whether the caller owns the organization that the key acts for, or operates the installation.
    #[must_use]
    pub const fn is_owner(&self) -> bool {
        self.is_owner
    }
}

covers_unowned! {
    NewApiKeyScope;
    ApiKeyScope<G>, for G;
}

/// Authorizes a person to create an API key: for themselves alone, as a member of an organization, or for an
/// organization itself. The last one requires `apikey:write`.
///
/// # Errors
/// - `UNAUTHORIZED` if the caller is not a person.
/// - `NOT_FOUND` if the person does not belong to the organization.
/// - `FORBIDDEN` if the person lacks `apikey:write`.
/// - `PLATFORM_SUSPENDED` if the organization's platform is suspended.
pub async fn authorize_new_api_key(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    purpose: ApiKeyPurpose<'_>,
) -> Result<NewApiKeyScope> {
    let user = authorize_person(cx)?;
    let operates = cx.caller.is_operator();
    let organization = match purpose {
        ApiKeyPurpose::Oneself => {
            return Ok(NewApiKeyScope(ApiKeyCreator::Oneself { user, operates }));
        }
        ApiKeyPurpose::Organization(id) => {
            let scope = authorize_membership(cx, uow, OrganizationRef::Id(id)).await?;
            return Ok(NewApiKeyScope(ApiKeyCreator::Organization(scope)));
        }
        ApiKeyPurpose::Member(id) => id,
    };
    let organization = unowned_records::<Organization>(uow)
        .get(organization)
        .await?;
    let own = membership_of(uow, &organization, user.user_id()).await?;
    let own = own.ok_or(Error::NotFound(Organization::KIND))?;
    ensure_not_suspended(cx, uow, organization.platform_id.as_ref()).await?;
    Ok(NewApiKeyScope(ApiKeyCreator::Member {
        membership: own,
        is_operator: operates,
        organization,
        user,
    }))
}

/// Authorizes a person to use an API key: their own, or with permission `G` one that an organization owns. Revoked keys
/// and keys of other owners are reported as missing.
///
/// # Errors
/// - `UNAUTHORIZED` if the caller is not a person.
/// - `KEY_NOT_FOUND` if the key is missing, revoked, or out of the caller's reach.
/// - `FORBIDDEN` if the caller lacks `G` in the organization that owns the key.
/// - `PLATFORM_SUSPENDED` if the key's platform is suspended.
pub async fn authorize_api_key<G: PermissionType>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    id: &ApiKeyId,
) -> Result<ApiKeyScope<G>> {
    let person = authorize_person(cx)?;
    let key = unowned_records::<ApiKey>(uow).find(id).await?;
    let key = key.filter(|key| key.status != ApiKeyStatus::Revoked);
    let key = key.ok_or_else(key_not_found)?;
    let (holds_scopes, is_owner) = match (&key.user_id, &key.organization_id) {
        (Some(user), _) if user == person.user_id() => {
            ensure_not_suspended(cx, uow, key.platform_id.as_ref()).await?;
            (
                true,
                is_owner_of_key_organization(cx, uow, &key, user).await?,
            )
        }
        (Some(_), _) | (None, None) => return Err(key_not_found()),
        (None, Some(organization)) => {
            let organization = OrganizationRef::Id(organization);
            let opened = authorize_membership::<G>(cx, uow, organization).await;
            let scope = opened.map_err(|error| match error {
                Error::NotFound(_) => key_not_found(),
                error => error,
            })?;
            let patterns = organization_key_patterns(&key);
            let holds = patterns.iter().all(|pattern| scope.holds(pattern));
            (holds, scope.is_owner())
        }
    };
    Ok(ApiKeyScope {
        key,
        has_key_permissions: holds_scopes,
        is_owner,
        permission: PhantomData,
    })
}

async fn is_owner_of_key_organization(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    key: &ApiKey,
    user: &UserId,
) -> Result<bool> {
    if cx.caller.is_operator() {
        return Ok(true);
    }
    let Some(organization) = &key.organization_id else {
        return Ok(false);
    };
    let Some(organization) = unowned_records::<Organization>(uow)
        .find(organization)
        .await?
    else {
        return Ok(false);
    };
    let own = membership_of(uow, &organization, user).await?;
    Ok(own.is_some_and(|own| own.roles.contains(&Role::OWNER)))
}

fn key_not_found() -> Error {
    Error::refused(Code::KeyNotFound, "API Key not found")
}
