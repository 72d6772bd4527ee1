//! The routes with which people manage their API keys. Requests with an API key are refused, so that a program cannot
//! create keys.

use std::time::Duration;

use core_domain::access::{
    ApiKeyPurpose, OrganizationRef, PersonScope, authorize_api_key, authorize_membership,
    authorize_new_api_key,
};
use core_domain::iam::{ApiKey, DEFAULT_ROTATION_OVERLAP};
use core_domain::kernel::{
    Code, Context, Error, OrganizationId, Patch, Result, Stored, permission,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::api_key::{self, NewApiKey};

use super::shapes::{
    CreateApiKey, DeleteApiKey, GetApiKey, ListApiKeys, RotateApiKey, SortBy, SortDirection,
    UpdateApiKey, refuse_undeclared,
};
use super::view::{ApiKeyList, ApiKeyView, IssuedApiKeyView};
use crate::iam::cookies::no_store;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, Row, Success, get, post};

pub(super) fn rows() -> Vec<Endpoint> {
    let style = |row: Row| row.errors(ErrorStyle::TopLevelCode);
    let of_key = [Code::KeyNotFound, Code::Forbidden, Code::PlatformSuspended];
    let with_key = |codes: &[Code]| [&of_key, codes].concat();
    vec![
        style(post("/api/auth/api-key/create", "createApiKey"))
            .summary("Creates an API key for the caller or an organization.")
            .description(
                "The secret is returned only in this response. A key without an organization is \
                 personal: it only reads the profile of its owner. A key never has more \
                 permissions than its owner, and no caller can give a key permissions that they do \
                 not have. Requires a proof of identity from the last 10 minutes.",
            )
            .replaces_unauthorized(Code::UnauthorizedSession, "Unauthorized or invalid session")
            .secret_answer()
            .refuses(&[
                Code::UnauthorizedSession,
                Code::StepUpRequired,
                Code::InvalidNameLength,
                Code::ExpiresInTooSmall,
                Code::ExpiresInTooLarge,
                Code::ServerOnlyProperty,
                Code::MetadataDisabled,
                Code::Forbidden,
                Code::PlatformSuspended,
                Code::NotFound,
                Code::LimitReached,
                Code::Conflict,
            ])
            .writes(create),
        style(get("/api/auth/api-key/list", "listApiKeys"))
            .summary("Lists API keys of the caller or an organization.")
            .description(
                "Returns the caller's own keys; with `organizationOwned=true` it returns the keys \
                 that belong to the organization. Deleted keys are not listed. The secrets are \
                 never returned.",
            )
            .refuses(&[Code::Forbidden, Code::PlatformSuspended, Code::NotFound])
            .reads(list),
        style(get("/api/auth/api-key/get", "getApiKey"))
            .summary("Returns an API key without its secret.")
            .description(
                "Returns a key of the caller or of an organization. A deleted key, and a key of \
                 another user, is reported as not found.",
            )
            .refuses(&of_key)
            .reads(get_key),
        style(post("/api/auth/api-key/update", "updateApiKey"))
            .summary("Updates an API key.")
            .description(
                "Renames the key, enables or disables it, or sets its rate limit; absent fields \
                 are kept. The change takes effect with the next request of the key. A disabled \
                 key can be enabled again. Only owners of the organization and operators can set \
                 the rate limit.",
            )
            .refuses(&with_key(&[
                Code::InvalidNameLength,
                Code::ServerOnlyProperty,
                Code::MetadataDisabled,
                Code::NoValuesToUpdate,
            ]))
            .writes(update),
        style(post("/api/auth/api-key/delete", "deleteApiKey"))
            .summary("Deletes an API key permanently.")
            .description(
                "The key is rejected from the next request on and cannot be restored. A second \
                 deletion is rejected as not found.",
            )
            .refuses(&of_key)
            .writes(delete),
        style(post("/api/auth/api-key/rotate", "rotateApiKey"))
            .summary("Replaces the secret of an API key.")
            .description(
                "Returns the new secret, only in this response. The previous secret stays valid \
                 for `overlap` seconds; with 0 every previous secret ends at once. While a \
                 previous secret is still valid, a rotation with an overlap is a conflict. The \
                 caller must have all permissions of the key. Requires a proof of identity from \
                 the last 10 minutes.",
            )
            .secret_answer()
            .refuses(&with_key(&[
                Code::InvalidState,
                Code::Conflict,
                Code::StepUpRequired,
            ]))
            .writes(rotate),
    ]
}

/// Returns the organization that the caller acts for.
fn active_organization(cx: &Context) -> Option<OrganizationId> {
    let active = cx.caller.membership();
    active.map(|own| own.organization_id.clone())
}

/// Returns the requested organization, or the organization that the caller acts for.
fn organization(cx: &Context, asked: Option<OrganizationId>) -> Result<OrganizationId> {
    asked
        .or_else(|| active_organization(cx))
        .ok_or_else(no_organization)
}

fn no_organization() -> Error {
    let message = "is required where no organization is active";
    Error::invalid("organizationId", "required", message)
}

async fn create(
    cx: &Cx,
    _: PersonScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), CreateApiKey>,
) -> Result<Output<IssuedApiKeyView>> {
    let body = input.body;
    refuse_undeclared(&body.rest)?;
    let organization = match body.organization_id {
        Patch::Keep => active_organization(cx),
        Patch::Clear => None,
        Patch::Set(organization) => Some(organization),
    };
    let purpose = match &organization {
        Some(organization) if body.organization_owned => ApiKeyPurpose::Organization(organization),
        Some(organization) => ApiKeyPurpose::Member(organization),
        None if body.organization_owned => return Err(no_organization()),
        None => ApiKeyPurpose::Oneself,
    };
    let scope = authorize_new_api_key(cx, uow, purpose).await?;
    let new = NewApiKey {
        name: body.name,
        prefix: body.prefix,
        expires_in: body.expires_in.map(|life| life.0),
        scopes: body.scopes,
        requests_per_minute: body.requests_per_minute.map(|limit| limit.0),
    };
    let issued = api_key::create(cx, &scope, uow, new).await?;
    Ok(no_store(Output::new(issued.into())))
}

async fn list(
    cx: &Cx,
    scope: PersonScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), ListApiKeys>,
) -> Result<Output<ApiKeyList>> {
    let query = input.query;
    let mut keys = if query.organization_owned {
        let organization = organization(cx, query.organization_id.clone())?;
        let organization = OrganizationRef::Id(&organization);
        let scope = authorize_membership::<permission::ApiKeyRead>(cx, uow, organization).await?;
        api_key::list_of_organization(&scope, uow).await?
    } else {
        let mut own = api_key::list_own(&scope, uow).await?;
        if let Some(wanted) = &query.organization_id {
            own.retain(|key| key.organization_id.as_ref() == Some(wanted));
        }
        own
    };
    sort(&mut keys, query.sort_by, query.sort_direction);
    let total = keys.len();
    let shown = keys.iter().skip(query.offset.map_or(0, |offset| offset.0));
    let shown = shown.take(query.limit.map_or(total, |limit| limit.0));
    Ok(Output::new(ApiKeyList {
        api_keys: shown.map(|key| ApiKeyView::from(&**key)).collect(),
        total,
        limit: query.limit.map(|limit| limit.0),
        offset: query.offset.map(|offset| offset.0),
    }))
}

/// Sorts the keys. Without a sort option they stay in their order, newest first.
fn sort(keys: &mut [Stored<ApiKey>], by: Option<SortBy>, direction: Option<SortDirection>) {
    if by.is_none() && direction.is_none() {
        return;
    }
    match by.unwrap_or_default() {
        SortBy::CreatedAt => keys.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id))),
        SortBy::UpdatedAt => keys.sort_by_key(|key| key.updated_at),
        SortBy::Name => keys.sort_by(|a, b| a.name.cmp(&b.name)),
        SortBy::ExpiresAt => keys.sort_by_key(|key| key.expires_at),
        SortBy::LastRequest => keys.sort_by_key(|key| key.last_used_at),
    }
    if direction == Some(SortDirection::Desc) {
        keys.reverse();
    }
}

async fn get_key(
    cx: &Cx,
    _: PersonScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), GetApiKey>,
) -> Result<Output<ApiKeyView>> {
    let id = &input.query.id;
    let scope = authorize_api_key::<permission::ApiKeyRead>(cx, uow, id).await?;
    Ok(Output::new(ApiKeyView::from(&**scope.key())))
}

async fn update(
    cx: &Cx,
    _: PersonScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), UpdateApiKey>,
) -> Result<Output<ApiKeyView>> {
    let body = input.body;
    refuse_undeclared(&body.rest)?;
    let scope = authorize_api_key::<permission::ApiKeyWrite>(cx, uow, &body.key_id).await?;
    let change = api_key::UpdateApiKey {
        name: body.name,
        enabled: body.enabled,
        requests_per_minute: body.requests_per_minute.map(|limit| limit.0),
    };
    let changed = api_key::update(cx, &scope, uow, change).await?;
    Ok(Output::new(ApiKeyView::from(&*changed)))
}

async fn delete(
    cx: &Cx,
    _: PersonScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), DeleteApiKey>,
) -> Result<Output<Success>> {
    let id = &input.body.key_id;
    let scope = authorize_api_key::<permission::ApiKeyWrite>(cx, uow, id).await?;
    api_key::delete(cx, &scope, uow).await?;
    Ok(Output::new(Success::YES))
}

async fn rotate(
    cx: &Cx,
    _: PersonScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), RotateApiKey>,
) -> Result<Output<IssuedApiKeyView>> {
    let id = &input.body.key_id;
    let scope = authorize_api_key::<permission::ApiKeyWrite>(cx, uow, id).await?;
    let overlap = input.body.overlap;
    let overlap = overlap.map_or(DEFAULT_ROTATION_OVERLAP, |seconds| {
        Duration::from_secs(seconds.0)
    });
    let issued = api_key::rotate(cx, &scope, uow, overlap).await?;
    Ok(no_store(Output::new(issued.into())))
}
