//! Versions of stack templates: publishing, reading and deprecating them, and determining the latest one.

use sha2::{Digest, Sha256};

use super::MAX_LISTED;
use super::template::get_by_name;
use crate::access::{OperatorScope, SignedInScope, audited, unaudited, unowned_records};
use crate::kernel::{
    Code, Context, Error, IllegalTransition, Machine, Page, Record, Result, StoreError, Stored,
    TemplateId, VersionId, WholeListQuery, hex,
};
use crate::port::UnitOfWork;
use crate::stacks::{
    PublishVersion, SemVer, StackDefinition, StackTemplate, StackVersion, StackVersionQuery,
    TemplateName, TemplateStatus, VersionEvent, VersionStatus,
};

/// Publishes a version, which never changes afterwards. Updates the template's latest version in the same unit of work.
///
/// # Errors
/// - `CONFLICT` if the template has a version of the same precedence, deprecated or not.
/// - `INVALID_STATE` if the template is deprecated.
/// - `VALIDATION_ERROR` if the definition breaks the rules of its known keys.
/// - `NOT_FOUND` if no template has the name.
pub async fn publish(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    name: &TemplateName,
    command: PublishVersion,
) -> Result<Stored<StackVersion>> {
    let definition = command.stack_definition.into();
    StackDefinition::parse(&definition).map_err(Error::Invalid)?;
    let template = get_by_name(uow, name).await?;
    let same = StackVersionQuery::Exactly(template.id.clone(), command.version.clone());
    if unowned_records::<StackVersion>(uow)
        .first(&same)
        .await?
        .is_some()
    {
        return Err(version_taken());
    }
    if template.status == TemplateStatus::Deprecated {
        return Err(IllegalTransition::new(template.status, [TemplateStatus::Active]).into());
    }
    let now = uow.now().await?;
    let version = StackVersion {
        id: VersionId::generate(now, cx.entropy.as_ref()),
        template_id: template.id.clone(),
        version: command.version,
        digest: hex(&Sha256::digest(definition.as_str())),
        stack_definition: definition,
        core_sdk_version: command.core_sdk_version,
        status: VersionStatus::Active,
        published_at: now,
        created_at: now,
    };
    let stored = audited::insert(cx, scope, uow, version, "stack_version.published").await;
    let stored = stored.map_err(|error| match error {
        Error::Store(StoreError::Conflict { .. }) => version_taken(),
        error => error,
    })?;
    refresh_latest(uow, template).await?;
    Ok(stored)
}

fn version_taken() -> Error {
    Error::refused(Code::Conflict, "The template has this version already.")
}

/// Returns the versions of a template, highest precedence first.
///
/// # Errors
/// `NOT_FOUND` if no template has the name; `INVALID_CURSOR` if the cursor is invalid.
pub async fn list(
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    name: &TemplateName,
    query: &WholeListQuery,
) -> Result<Page<Stored<StackVersion>>> {
    let template = get_by_name(uow, name).await?;
    let all = StackVersionQuery::OfTemplate(template.id.clone());
    unowned_records(uow)
        .page(&all, &query.page(MAX_LISTED))
        .await
}

/// Returns the version of a template with the precedence of `version`, deprecated or not.
///
/// # Errors
/// `NOT_FOUND` if there is no such template or version.
pub async fn get(
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    name: &TemplateName,
    version: &SemVer,
) -> Result<Stored<StackVersion>> {
    let template = get_by_name(uow, name).await?;
    of_precedence(uow, &template.id, version).await
}

/// Returns the version of a template with the precedence of `version`, deprecated or not.
///
/// # Errors
/// `NOT_FOUND` if the template has no such version.
pub(in crate::use_case) async fn of_precedence(
    uow: &mut dyn UnitOfWork,
    template: &TemplateId,
    version: &SemVer,
) -> Result<Stored<StackVersion>> {
    let exactly = StackVersionQuery::Exactly(template.clone(), version.clone());
    let found = unowned_records::<StackVersion>(uow).first(&exactly).await?;
    found.ok_or(Error::NotFound(StackVersion::KIND))
}

/// Returns the version with this id.
///
/// # Errors
/// `NOT_FOUND` if no version has the id.
pub(in crate::use_case) async fn by_id(
    uow: &mut dyn UnitOfWork,
    version: &VersionId,
) -> Result<Stored<StackVersion>> {
    unowned_records::<StackVersion>(uow).get(version).await
}

/// Returns the latest version of a template: the highest active release, else the highest active version, else the
/// highest version. `None` if the template has no versions.
///
/// # Errors
/// Only those of the store.
pub async fn latest(
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    template: &TemplateId,
) -> Result<Option<Stored<StackVersion>>> {
    find_latest(uow, template).await
}

async fn find_latest(
    uow: &mut dyn UnitOfWork,
    template: &TemplateId,
) -> Result<Option<Stored<StackVersion>>> {
    for query in [
        StackVersionQuery::ActiveReleases(template.clone()),
        StackVersionQuery::Active(template.clone()),
        StackVersionQuery::OfTemplate(template.clone()),
    ] {
        if let Some(version) = unowned_records::<StackVersion>(uow).first(&query).await? {
            return Ok(Some(version));
        }
    }
    Ok(None)
}

/// Deprecates a version, which can still be read and used. Deprecating it again has no effect.
///
/// # Errors
/// `NOT_FOUND` if there is no such template or version; `VERSION_CONFLICT` if the version does not match `If-Match`.
pub async fn deprecate(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    name: &TemplateName,
    version: &SemVer,
) -> Result<Stored<StackVersion>> {
    let template = get_by_name(uow, name).await?;
    let seen = of_precedence(uow, &template.id, version).await?;
    let mut next = seen.edit();
    if seen.status != VersionStatus::Deprecated {
        next.status = VersionEvent::Deprecate.next(seen.status)?;
    }
    let stored = audited::replace(cx, scope, uow, &seen, next, "stack_version.deprecated").await?;
    if stored.version() != seen.version() {
        refresh_latest(uow, template).await?;
    }
    Ok(stored)
}

/// Updates the template's latest version after a change of its versions, in the same unit of work. The template always
/// gets a new record version, because its representation contains the latest version.
async fn refresh_latest(uow: &mut dyn UnitOfWork, template: Stored<StackTemplate>) -> Result<()> {
    let latest = find_latest(uow, &template.id).await?;
    let mut next = template.edit();
    next.latest_version = latest.map(|version| version.version.to_string());
    next.updated_at = uow.now().await?;
    unaudited::replace(uow, &template, next).await?;
    Ok(())
}
