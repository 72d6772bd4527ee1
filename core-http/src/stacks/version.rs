//! Endpoints for the versions of stack templates. The entity tag of a version is the digest of its definition.

use core_domain::access::{OperatorScope, SignedInScope};
use core_domain::kernel::{Code, Result, Stored, VersionId};
use core_domain::port::UnitOfWork;
use core_domain::stacks::{SemVer, StackVersion, TemplateName};
use core_domain::use_case::stacks::version;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::template::Acknowledgement;
use crate::kernel::{
    CountedList, Cx, Endpoint, Input, Output, Versioned, call_with_id_and_body,
    call_with_id_and_query, delete, get, post,
};

const ALL: &str = "/api/v1/stacks/{name}/versions";
const ONE: &str = "/api/v1/stacks/{name}/{version}";

type One = (TemplateName, SemVer);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(ALL, "listStackVersions")
            .summary("Lists the versions of a stack template, highest first.")
            .description(
                "The order is that of semantic versioning. Deprecated versions are in the list. \
                 It has all versions on one page, up to 1,000, unless `limit` is given.",
            )
            .reads(
                call_with_id_and_query(version::list)
                    .map(|page| Output::new(CountedList::from(page))),
            ),
        post(ALL, "publishStackVersion")
            .summary("Publishes a version of a stack template.")
            .description(
                "The definition is validated. The version never changes afterwards, and its \
                 number cannot be used again, even after a deprecation. The latest version of the \
                 template is updated. A deprecated template accepts no versions.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict, Code::InvalidState])
            .writes(call_with_id_and_body(version::publish).map(|published| {
                let id = published.id.clone();
                Versioned::of(&published, PublishedVersion { id })
            })),
        get(ONE, "getStackVersion")
            .summary("Returns a version of a stack template.")
            .description("Deprecated versions are returned too.")
            .reads(show),
        delete(ONE, "deprecateStackVersion")
            .summary("Deprecates a version of a stack template.")
            .description(
                "The version can still be read and activated, but it is no longer the latest \
                 version if an active one exists. A repeated call has no effect.",
            )
            .if_match()
            .writes(deprecate),
    ]
}

/// The id of the published version.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct PublishedVersion {
    /// The id of the version.
    id: VersionId,
}

async fn show(
    _: &Cx,
    scope: SignedInScope,
    uow: &mut dyn UnitOfWork,
    input: Input<One>,
) -> Result<Stored<StackVersion>> {
    let (name, wanted) = input.path;
    version::get(&scope, uow, &name, &wanted).await
}

async fn deprecate(
    cx: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<One>,
) -> Result<Output<Acknowledgement>> {
    let (name, wanted) = input.path;
    version::deprecate(cx, &scope, uow, &name, &wanted).await?;
    Ok(Output::new(Acknowledgement::OK))
}
