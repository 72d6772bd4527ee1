//! Versions of templates: finding and deprecating them, and which is the latest.

use serde_json::json;

use super::MAX_LISTED;
use super::templates::find_template;
use crate::kernel::{Code, Context, Error, Result, TemplateId};
use crate::port::{Record, Stored, UnitOfWork};
use crate::shared::{Happening, audited};
use crate::stacks::{SemVer, StackTemplate, StackVersion, StackVersionQuery, VersionStatus};

/// The versions of a template, highest precedence first, and how many there are.
///
/// # Errors
/// `NOT_FOUND`, `UNAUTHORIZED`.
pub async fn list_versions(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    name: &str,
) -> Result<(Vec<Stored<StackVersion>>, u64)> {
    let template = find_template(cx, uow, name).await?;
    let all = StackVersionQuery::OfTemplate(template.id.clone());
    let total = uow.stack_versions().count(&all).await?;
    Ok((uow.stack_versions().list(&all, MAX_LISTED).await?, total))
}

/// The version of this precedence; deprecated ones too.
///
/// # Errors
/// `NOT_FOUND`, `UNAUTHORIZED`.
pub async fn find_version(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    name: &str,
    version: &SemVer,
) -> Result<Stored<StackVersion>> {
    let template = find_template(cx, uow, name).await?;
    uow.stack_versions()
        .first(&StackVersionQuery::Exactly(
            template.id.clone(),
            version.clone(),
        ))
        .await?
        .ok_or(Error::NotFound(StackVersion::KIND))
}

/// The version a template names as its latest, if it has any: the highest active release, else the highest active, else
/// the highest.
///
/// # Errors
/// When the store failed.
pub async fn latest(
    uow: &mut dyn UnitOfWork,
    template: &TemplateId,
) -> Result<Option<Stored<StackVersion>>> {
    for query in [
        StackVersionQuery::ActiveReleases(template.clone()),
        StackVersionQuery::Active(template.clone()),
        StackVersionQuery::OfTemplate(template.clone()),
    ] {
        if let Some(version) = uow.stack_versions().first(&query).await? {
            return Ok(Some(version));
        }
    }
    Ok(None)
}

/// Deprecates a version: it stays readable and usable. Twice is once.
///
/// # Errors
/// `NOT_FOUND`, `UNAUTHORIZED`, `FORBIDDEN`.
pub async fn deprecate(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    name: &str,
    version: &SemVer,
) -> Result<Stored<StackVersion>> {
    cx.caller.operator()?;
    let template = find_template(cx, uow, name).await?;
    let seen = find_version(cx, uow, name, version).await?;
    if seen.status == VersionStatus::Deprecated {
        return Ok(seen);
    }
    let mut next = seen.clone().into_inner();
    next.status = VersionStatus::Deprecated;
    let stored = uow.stack_versions().replace(&seen, next).await?;
    refresh_latest(uow, template).await?;
    let happening = Happening {
        action: "stack_version.deprecated",
        entity_id: stored.id.to_string(),
        before: Some(json!({ "template": name, "version": seen.version, "status": seen.status })),
        after: Some(
            json!({ "template": name, "version": stored.version, "status": stored.status }),
        ),
        ..Happening::default()
    };
    audited(cx, uow, happening).await?;
    Ok(stored)
}

/// Settles the template's latest version after its versions changed. Always a new version of the template, because what
/// is shown of it shows the latest version too.
pub(super) async fn refresh_latest(
    uow: &mut dyn UnitOfWork,
    template: Stored<StackTemplate>,
) -> Result<()> {
    let latest = latest(uow, &template.id).await?;
    let mut next = template.clone().into_inner();
    next.latest_version = latest.map(|version| version.version.to_string());
    next.updated_at = uow.now().await?;
    uow.stack_templates().replace(&template, next).await?;
    Ok(())
}

pub(super) fn version_taken() -> Error {
    Error::refused(Code::Conflict, "The template has this version already.")
}
