//! Stack templates: creating, reading and updating them.

use super::MAX_LISTED;
use crate::access::{OperatorScope, SignedInScope, audited, unowned_records};
use crate::kernel::{
    Code, Context, Error, Machine, Page, Record, Result, StoreError, Stored, TemplateId,
    WholeListQuery,
};
use crate::port::UnitOfWork;
use crate::stacks::{
    CreateTemplate, StackTemplate, StackTemplateQuery, TemplateEvent, TemplateName, UpdateTemplate,
};

/// Creates a template without versions.
///
/// # Errors
/// `CONFLICT` if another template has the name.
pub async fn create(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    command: CreateTemplate,
) -> Result<Stored<StackTemplate>> {
    let now = uow.now().await?;
    let id = TemplateId::generate(now, cx.entropy.as_ref());
    let template = StackTemplate::create(id, command, now);
    let stored = audited::insert(cx, scope, uow, template, "stack_template.created").await;
    stored.map_err(|error| match error {
        Error::Store(StoreError::Conflict { .. }) => {
            Error::refused(Code::Conflict, "A template has this name already.")
        }
        error => error,
    })
}

/// Returns the templates, newest first.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor is invalid.
pub async fn list(
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    query: &WholeListQuery,
) -> Result<Page<Stored<StackTemplate>>> {
    let page = query.page(MAX_LISTED);
    unowned_records(uow)
        .page(&StackTemplateQuery::All, &page)
        .await
}

/// Returns the template with this name.
///
/// # Errors
/// `NOT_FOUND` if no template has the name.
pub async fn get(
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    name: &TemplateName,
) -> Result<Stored<StackTemplate>> {
    get_by_name(uow, name).await
}

/// Returns the template with this name, without a check of permissions.
pub(super) async fn get_by_name(
    uow: &mut dyn UnitOfWork,
    name: &TemplateName,
) -> Result<Stored<StackTemplate>> {
    let named = StackTemplateQuery::Named(name.clone());
    let found = unowned_records::<StackTemplate>(uow).first(&named).await?;
    found.ok_or(Error::NotFound(StackTemplate::KIND))
}

/// Returns the template with this name or id. A name takes precedence over an equal id.
///
/// # Errors
/// `NOT_FOUND` if no template has the name or id.
pub(in crate::use_case) async fn resolve(
    uow: &mut dyn UnitOfWork,
    name_or_id: &str,
) -> Result<Stored<StackTemplate>> {
    if let Ok(name) = TemplateName::parse(name_or_id) {
        let named = StackTemplateQuery::Named(name);
        if let Some(found) = unowned_records::<StackTemplate>(uow).first(&named).await? {
            return Ok(found);
        }
    }
    unowned_records::<StackTemplate>(uow).get(name_or_id).await
}

/// Updates a template.
///
/// # Errors
/// `NOT_FOUND` if no template has the name; `VERSION_CONFLICT` if the template does not match `If-Match`.
pub async fn update(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    name: &TemplateName,
    command: UpdateTemplate,
) -> Result<Stored<StackTemplate>> {
    let seen = get_by_name(uow, name).await?;
    let mut next = seen.edit();
    if let Some(status) = command.status
        && let Some(event) = TemplateEvent::between(seen.status, status)?
    {
        next.status = event.next(seen.status)?;
    }
    command.apply_to(&mut next);
    audited::replace(cx, scope, uow, &seen, next, "stack_template.updated").await
}
