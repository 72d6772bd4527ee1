//! Endpoints for stack templates.

use core_domain::access::SignedInScope;
use core_domain::kernel::{Code, Result, Stored, TemplateId};
use core_domain::port::UnitOfWork;
use core_domain::stacks::{StackTemplate, StackVersion, TemplateName};
use core_domain::use_case::stacks::{template, version};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{
    CountedList, Cx, Endpoint, Input, Output, Versioned, call_with_body, call_with_id_and_body,
    call_with_query, get, patch, post,
};

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
            .reads(
                call_with_query(template::list).map(|page| Output::new(CountedList::from(page))),
            ),
        post(ALL, "createStackTemplate")
            .summary("Creates a stack template.")
            .description(
                "The template has no versions yet. Its name is unique and cannot be changed.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict])
            .writes(call_with_body(template::create).map(|created| {
                let id = created.id.clone();
                Versioned::of(&created, CreatedTemplate { id })
            })),
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
            .writes(
                call_with_id_and_body(template::update)
                    .map(|updated| Versioned::of(&updated, Acknowledgement::OK)),
            ),
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
