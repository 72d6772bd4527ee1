//! Stack templates: making, finding and changing them.

use serde_json::{Value, json};

use super::MAX_LISTED;
use crate::kernel::{Code, Context, Error, Result, TemplateId};
use crate::port::{Record, StoreError, Stored, UnitOfWork};
use crate::shared::{Happening, audited};
use crate::stacks::{StackTemplate, StackTemplateQuery, TemplateStatus};

/// What a new template is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTemplate {
    /// Its name in paths.
    pub name: String,
    /// What people call it.
    pub display_name: String,
    /// What it is for.
    pub description: String,
    /// A picture for it.
    pub icon: Option<String>,
    /// The field it belongs to.
    pub domain: Option<String>,
}

/// What changes about a template; `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateChange {
    /// What people call it.
    pub display_name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// A picture for it; `Some(None)` takes it away.
    pub icon: Option<Option<String>>,
    /// Whether it is offered.
    pub status: Option<TemplateStatus>,
}

/// Makes a template without versions.
///
/// # Errors
/// `CONFLICT` when the name is taken; `UNAUTHORIZED`, `FORBIDDEN`.
pub async fn create_template(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    new: NewTemplate,
) -> Result<Stored<StackTemplate>> {
    cx.caller.operator()?;
    let taken = StackTemplateQuery::Named(new.name.clone());
    if uow.stack_templates().first(&taken).await?.is_some() {
        return Err(name_taken());
    }
    let now = uow.now().await?;
    let template = StackTemplate {
        id: TemplateId::generate(now, cx.entropy.as_ref()),
        name: new.name,
        display_name: new.display_name,
        description: new.description,
        icon: new.icon,
        domain: new.domain,
        latest_version: None,
        status: TemplateStatus::Active,
        created_at: now,
        updated_at: now,
    };
    let stored = match uow.stack_templates().insert(template).await {
        Err(StoreError::Conflict { .. }) => return Err(name_taken()),
        outcome => outcome?,
    };
    let happening = Happening {
        action: "stack_template.created",
        entity_id: stored.id.to_string(),
        after: Some(picture(&stored)),
        ..Happening::default()
    };
    audited(cx, uow, happening).await?;
    Ok(stored)
}

fn name_taken() -> Error {
    Error::refused(Code::Conflict, "A template has this name already.")
}

/// The templates, newest first, and how many there are.
///
/// # Errors
/// `UNAUTHORIZED`.
pub async fn list_templates(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
) -> Result<(Vec<Stored<StackTemplate>>, u64)> {
    cx.caller.signed_in()?;
    let all = StackTemplateQuery::All;
    let total = uow.stack_templates().count(&all).await?;
    Ok((uow.stack_templates().list(&all, MAX_LISTED).await?, total))
}

/// The template with this name.
///
/// # Errors
/// `NOT_FOUND`, `UNAUTHORIZED`.
pub async fn find_template(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    name: &str,
) -> Result<Stored<StackTemplate>> {
    cx.caller.signed_in()?;
    uow.stack_templates()
        .first(&StackTemplateQuery::Named(name.to_owned()))
        .await?
        .ok_or(Error::NotFound(StackTemplate::KIND))
}

/// Changes a template. A change that changes nothing leaves the record, its version and the audit alone.
///
/// # Errors
/// `NOT_FOUND`, `UNAUTHORIZED`, `FORBIDDEN`.
pub async fn update_template(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    name: &str,
    change: TemplateChange,
) -> Result<Stored<StackTemplate>> {
    cx.caller.operator()?;
    let seen = find_template(cx, uow, name).await?;
    let mut next = changed(&seen, change);
    if next == *seen {
        return Ok(seen);
    }
    next.updated_at = uow.now().await?;
    let stored = uow.stack_templates().replace(&seen, next).await?;
    let happening = Happening {
        action: "stack_template.updated",
        entity_id: stored.id.to_string(),
        before: Some(picture(&seen)),
        after: Some(picture(&stored)),
        ..Happening::default()
    };
    audited(cx, uow, happening).await?;
    Ok(stored)
}

fn changed(template: &StackTemplate, change: TemplateChange) -> StackTemplate {
    let mut next = template.clone();
    if let Some(display_name) = change.display_name {
        next.display_name = display_name;
    }
    if let Some(description) = change.description {
        next.description = description;
    }
    if let Some(icon) = change.icon {
        next.icon = icon;
    }
    if let Some(status) = change.status {
        next.status = status;
    }
    next
}

fn picture(template: &StackTemplate) -> Value {
    json!({
        "name": template.name,
        "displayName": template.display_name,
        "description": template.description,
        "icon": template.icon,
        "domain": template.domain,
        "status": template.status,
        "latestVersion": template.latest_version,
    })
}
