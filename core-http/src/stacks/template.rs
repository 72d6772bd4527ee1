//! Stack templates.

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
            .summary("Lists the templates, newest first.")
            .reads(list),
        post(ALL, "createStackTemplate")
            .summary("Creates a template.")
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict])
            .writes(create),
        get(ONE, "getStackTemplate")
            .summary("Shows a template and its latest version.")
            .reads(show),
        patch(ONE, "updateStackTemplate")
            .summary("Changes a template, or whether it is offered.")
            .if_match()
            .writes(update),
    ]
}

/// The id of what was created.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct CreatedTemplate {
    id: TemplateId,
}

/// It is done.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(super) struct Done {
    /// Always true.
    ok: bool,
}

impl Done {
    pub(super) const OK: Self = Self { ok: true };
}

/// A template with its latest version, if it has any.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TemplateDetail {
    template: StackTemplate,
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
) -> Result<Versioned<Done>> {
    let updated = template::update(cx, &scope, uow, &input.path.0, input.body).await?;
    Ok(Versioned::of(&updated, Done::OK))
}
