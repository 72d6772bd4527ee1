//! Versions of templates: publishing, finding and deprecating them, and which is the latest.

use sha2::{Digest, Sha256};

use super::MAX_LISTED;
use super::template::named;
use crate::access::{OperatorScope, SignedInScope, audited, unaudited, unowned};
use crate::kernel::{
    Code, Context, Error, IllegalMove, Machine, Page, Record, Result, StoreError, Stored,
    TemplateId, VersionId, WholeListQuery, hex,
};
use crate::port::UnitOfWork;
use crate::stacks::{
    PublishVersion, SemVer, StackDefinition, StackTemplate, StackVersion, StackVersionQuery,
    TemplateName, TemplateStatus, VersionEvent, VersionStatus,
};

/// Publishes a version; it never changes afterwards. The template's latest version is settled in the same unit.
///
/// # Errors
/// `CONFLICT` when the template has a version of this precedence, deprecated or not; `INVALID_STATE` when the template
/// is deprecated; `VALIDATION_ERROR` for a definition that breaks the rules of its known keys; `NOT_FOUND`.
pub async fn publish(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    name: &TemplateName,
    command: PublishVersion,
) -> Result<Stored<StackVersion>> {
    let definition = command.stack_definition.into();
    StackDefinition::parse(&definition).map_err(Error::Invalid)?;
    let template = named(uow, name).await?;
    let same = StackVersionQuery::Exactly(template.id.clone(), command.version.clone());
    if unowned::<StackVersion>(uow).first(&same).await?.is_some() {
        return Err(version_taken());
    }
    if template.status == TemplateStatus::Deprecated {
        return Err(IllegalMove::new(template.status, [TemplateStatus::Active]).into());
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

/// The versions of a template, highest precedence first.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_CURSOR`.
pub async fn list(
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    name: &TemplateName,
    query: &WholeListQuery,
) -> Result<Page<Stored<StackVersion>>> {
    let template = named(uow, name).await?;
    let all = StackVersionQuery::OfTemplate(template.id.clone());
    unowned(uow).page(&all, &query.page(MAX_LISTED)).await
}

/// The version of this precedence; deprecated ones too.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get(
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    name: &TemplateName,
    version: &SemVer,
) -> Result<Stored<StackVersion>> {
    let template = named(uow, name).await?;
    of_precedence(uow, &template.id, version).await
}

/// The version of a template of this precedence; deprecated ones too.
///
/// # Errors
/// `NOT_FOUND`.
pub(in crate::use_case) async fn of_precedence(
    uow: &mut dyn UnitOfWork,
    template: &TemplateId,
    version: &SemVer,
) -> Result<Stored<StackVersion>> {
    let exactly = StackVersionQuery::Exactly(template.clone(), version.clone());
    let found = unowned::<StackVersion>(uow).first(&exactly).await?;
    found.ok_or(Error::NotFound(StackVersion::KIND))
}

/// A version, by its id.
///
/// # Errors
/// `NOT_FOUND`.
pub(in crate::use_case) async fn by_id(
    uow: &mut dyn UnitOfWork,
    version: &VersionId,
) -> Result<Stored<StackVersion>> {
    unowned::<StackVersion>(uow).get(version).await
}

/// The version a template names as its latest, if it has any: the highest active release, else the highest active, else
/// the highest.
///
/// # Errors
/// When the store failed.
pub async fn latest(
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    template: &TemplateId,
) -> Result<Option<Stored<StackVersion>>> {
    latest_of(uow, template).await
}

async fn latest_of(
    uow: &mut dyn UnitOfWork,
    template: &TemplateId,
) -> Result<Option<Stored<StackVersion>>> {
    for query in [
        StackVersionQuery::ActiveReleases(template.clone()),
        StackVersionQuery::Active(template.clone()),
        StackVersionQuery::OfTemplate(template.clone()),
    ] {
        if let Some(version) = unowned::<StackVersion>(uow).first(&query).await? {
            return Ok(Some(version));
        }
    }
    Ok(None)
}

/// Deprecates a version: it stays readable and usable. Twice is once.
///
/// # Errors
/// `NOT_FOUND`; `VERSION_CONFLICT`.
pub async fn deprecate(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    name: &TemplateName,
    version: &SemVer,
) -> Result<Stored<StackVersion>> {
    let template = named(uow, name).await?;
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

/// Settles the template's latest version after its versions changed: a part of that change. Always a new version of the
/// template, because what is shown of it shows the latest version too.
async fn refresh_latest(uow: &mut dyn UnitOfWork, template: Stored<StackTemplate>) -> Result<()> {
    let latest = latest_of(uow, &template.id).await?;
    let mut next = template.edit();
    next.latest_version = latest.map(|version| version.version.to_string());
    next.updated_at = uow.now().await?;
    unaudited::replace(uow, &template, next).await?;
    Ok(())
}
