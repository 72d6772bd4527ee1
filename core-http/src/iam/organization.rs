//! Creation of organizations: by people together with a platform, by services, and once for the operators.

use std::sync::Arc;

use core_domain::access::{MemberScope, NewOrganizationScope, OrganizationRef, SessionScope};
use core_domain::iam::{Organization, OrganizationType, SetUpOrganization};
use core_domain::kernel::{
    Code, Error, Name, OrganizationId, PlatformId, Result, Slug, Stored, UserId,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::{organization, session};
use core_domain::use_case::registry::tenant;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::config::Iam;
use crate::kernel::{
    BySession, Cx, Endpoint, Input, OnOrganization, Output, Versioned, call_with_body, get, post,
    with,
};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post("/api/core/org-setup", "orgSetup")
            .summary("Creates an organization together with its platform.")
            .description(
                "Creates an organization that the caller owns, a platform in the starter tier and \
                 its first tenant. Queues the job that provisions the platform's infrastructure. \
                 The session acts for the new organization from then on. Only the session cookie \
                 is accepted; a bearer token in addition must belong to the same session. A \
                 repeated call with the same slug is a conflict.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::SlugTaken, Code::LimitReached, Code::PlatformSuspended])
            .writes(with(iam, set_up)),
        post("/api/core/bootstrap", "bootstrap")
            .summary("Creates the operator organization of the installation.")
            .description(
                "Works once; later calls are a conflict. The owner is named by `ownerId`, or by \
                 `email` if that address is verified. Without an owner the organization has no \
                 members. Sessions of the owner without an active organization act for this one \
                 at once.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict, Code::SlugTaken, Code::NotFound])
            .writes(call_with_body(organization::bootstrap).map(bootstrap_response)),
        post("/api/core/organizations", "createOrganization")
            .summary("Creates an organization for a named owner.")
            .description(
                "Creates the organization and the owner's membership, without a platform. A \
                 repeated call with the same slug is a conflict.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict, Code::SlugTaken, Code::NotFound])
            .writes(call_with_body(organization::create_for_owner)),
        get("/api/core/organizations/{slug}", "getOrganization")
            .summary("Returns an organization by its slug.")
            .description(
                "Returns the organization if the caller is a member of it or an operator. An \
                 organization of others is reported as not found.",
            )
            .reads(by_slug),
    ]
}

/// The new organization and its platform.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OrganizationSetUp {
    /// The id of the organization.
    org_id: OrganizationId,
    /// The id of the platform.
    platform_id: PlatformId,
    /// The slug of the organization and the platform.
    slug: Slug,
    /// The name of the organization and the platform.
    name: Name,
}

async fn set_up(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: BySession<NewOrganizationScope>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), SetUpOrganization>,
) -> Result<Output<OrganizationSetUp>> {
    ensure_by_cookie(cx, &iam, &scope.session, uow).await?;
    let (slug, name) = (input.body.slug.clone(), input.body.name.clone());
    let done = tenant::set_up(cx, &scope, uow, input.body).await?;
    Ok(Output::new(OrganizationSetUp {
        org_id: done.org_id,
        platform_id: done.platform_id,
        slug,
        name: name.into(),
    }))
}

/// Requires a valid session cookie. A bearer token, which a gateway may require in addition, must belong to the same
/// session.
async fn ensure_by_cookie(
    cx: &Cx,
    iam: &Iam,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    let token = iam.cookie_token(&cx.headers).ok_or(Error::Unauthorized)?;
    let found = session::details_by_token(uow, &token).await?;
    let same = found.is_some_and(|found| found.session.id == *scope.session_id());
    if same {
        Ok(())
    } else {
        Err(Error::Unauthorized)
    }
}

impl<Q, B> OnOrganization for Input<(Slug,), Q, B> {
    fn organization(&self) -> OrganizationRef<'_> {
        OrganizationRef::Slug(&self.path.0)
    }
}

async fn by_slug(
    _: &Cx,
    scope: MemberScope,
    _: &mut dyn UnitOfWork,
    _: Input<(Slug,)>,
) -> Result<Stored<Organization>> {
    Ok(scope.organization().clone())
}

/// The operator organization of the installation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OperatorOrganization {
    /// The id of the organization.
    org_id: OrganizationId,
    /// The name of the organization.
    name: Name,
    /// The slug of the organization.
    slug: Slug,
    /// The type of the organization: `core-operator`.
    r#type: OrganizationType,
    /// The user who owns the organization; `null` without an owner.
    owner_id: Option<UserId>,
}

/// Returns the response to a bootstrap.
fn bootstrap_response(created: organization::BootstrapResult) -> Versioned<OperatorOrganization> {
    let organization = created.organization;
    let view = OperatorOrganization {
        org_id: organization.id.clone(),
        name: organization.name.clone(),
        slug: organization.slug.clone(),
        r#type: organization.kind,
        owner_id: created.owner,
    };
    Versioned::of(&organization, view)
}
