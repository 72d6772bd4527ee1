//! Endpoints for stack templates.

use core_domain::access::{OperatorScope, SignedInScope};
use core_domain::kernel::{Code, Result, Stored, TemplateId, WholeListQuery};
use core_domain::port::UnitOfWork;
use core_domain::stacks::{
    CreateTemplate, StackTemplate, StackVersion, TemplateName, UpdateTemplate,
};
use core_domain::use_case::stacks::{template, version};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Counted, Cx, Endpoint, Input, Output, Versioned, get, patch, post};

const ALL: &str = "/api/v1/stacks";
const ONE: &str = "/api/v1/stacks/{name}";

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(ALL, "listStackTemplates")
            .summary("Lists the stack templates, newest first.")
            .description(
                "Deprecated templates are in the list. It has all templates on one page, up to \
                 1,000, unless `limit` is given.",
            )
            .reads(list),
        post(ALL, "createStackTemplate")
            .summary("Creates a stack template.")
            .description(
                "The template has no versions yet. Its name is unique and cannot be changed.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict])
            .writes(create),
        get(ONE, "getStackTemplate")
            .summary("Returns a stack template and its latest version.")
            .description(
                "The latest version is the highest active release. If there is none, it is the \
                 highest active pre-release, otherwise the highest version. `latestVersion` is \
                 `null` if the template has no versions.",
            )
            .reads(show),
        patch(ONE, "updateStackTemplate")
            .summary("Updates a stack template, or deprecates it.")
            .description(
                "Fields that are not in the body stay unchanged. A deprecated template accepts no \
                 new versions and cannot be used for onboarding; its versions can still be \
                 activated. The status `active` reverses the deprecation.",
            )
            .if_match()
            .writes(update),
    ]
}

/// The id of the created template.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct CreatedTemplate {
    /// The id of the template.
    id: TemplateId,
}

/// The response to a successful change without further content.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(super) struct Acknowledgement {
    /// Always `true`; errors have another form.
    ok: bool,
}

impl Acknowledgement {
    pub(super) const OK: Self = Self { ok: true };
}

/// A template with its latest version.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TemplateDetail {
    /// The record of the template.
    template: StackTemplate,
    /// The latest version; `null` if the template has no versions.
    latest_version: Option<StackVersion>,
}

async fn list(
    _: &Cx,
    scope: SignedInScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), WholeListQuery>,
) -> Result<Output<Counted<StackTemplate>>> {
    let page = template::list(&scope, uow, &input.query).await?;
    Ok(Output::new(Counted::from(page)))
}

async fn create(
    cx: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), CreateTemplate>,
) -> Result<Versioned<CreatedTemplate>> {
    let created = template::create(cx, &scope, uow, input.body).await?;
    let id = created.id.clone();
    Ok(Versioned::of(&created, CreatedTemplate { id }))
}

async fn show(
    _: &Cx,
    scope: SignedInScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(TemplateName,)>,
) -> Result<Versioned<TemplateDetail>> {
    let found = template::get(&scope, uow, &input.path.0).await?;
    let latest = version::latest(&scope, uow, &found.id).await?;
    let detail = TemplateDetail {
        template: found.edit(),
        latest_version: latest.map(Stored::into_inner),
    };
    Ok(Versioned::of(&found, detail))
}

async fn update(
    cx: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(TemplateName,), (), UpdateTemplate>,
) -> Result<Versioned<Acknowledgement>> {
    let updated = template::update(cx, &scope, uow, &input.path.0, input.body).await?;
    Ok(Versioned::of(&updated, Acknowledgement::OK))
}
