//! Organizations: a person sets up theirs with its platform, and the operator organization is created once.

use std::sync::Arc;

use core_domain::access::{
    MemberScope, NewOrganizationScope, OrganizationRef, ServiceScope, SessionScope,
};
use core_domain::iam::{
    Bootstrap, CreateOrganization, Organization, OrganizationType, SetUpOrganization,
};
use core_domain::kernel::{
    Code, Error, Name, OrganizationId, PlatformId, Result, Slug, Stored, UserId,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::{organization, session};
use core_domain::use_case::registry::organization_setup;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::config::Iam;
use crate::kernel::{
    BySession, Cx, Endpoint, Input, OnOrganization, Output, Versioned, get, post, with,
};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post("/api/core/org-setup", "orgSetup")
            .summary("Sets up an organization with its platform; by session cookie alone.")
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::SlugTaken, Code::LimitReached, Code::PlatformSuspended])
            .writes(with(iam, set_up)),
        post("/api/core/bootstrap", "bootstrap")
            .summary("Creates the operator organization; works once.")
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict, Code::SlugTaken, Code::NotFound])
            .writes(bootstrap),
        post("/api/core/organizations", "createOrganization")
            .summary("Creates an organization for an owner; for services.")
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict, Code::SlugTaken, Code::NotFound])
            .writes(create),
        get("/api/core/organizations/{slug}", "getOrganization")
            .summary("An organization by its slug, for its members.")
            .reads(by_slug),
    ]
}

/// The organization and its platform.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OrganizationSetUp {
    org_id: OrganizationId,
    platform_id: PlatformId,
    slug: Slug,
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
    let done = organization_setup::set_up(cx, &scope, uow, input.body).await?;
    Ok(Output::new(OrganizationSetUp {
        org_id: done.org_id,
        platform_id: done.platform_id,
        slug,
        name: name.into(),
    }))
}

/// A bearer is not enough here. One that stands beside the cookie, because the gateway wants it, must be of the same
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

async fn create(
    cx: &Cx,
    scope: ServiceScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), CreateOrganization>,
) -> Result<Stored<Organization>> {
    organization::create_for_owner(cx, &scope, uow, input.body).await
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

/// The operator organization.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OperatorOrganization {
    org_id: OrganizationId,
    name: Name,
    slug: Slug,
    r#type: OrganizationType,
    owner_id: Option<UserId>,
}

async fn bootstrap(
    cx: &Cx,
    scope: ServiceScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), Bootstrap>,
) -> Result<Versioned<OperatorOrganization>> {
    let created = organization::bootstrap(cx, &scope, uow, input.body).await?;
    let organization = created.organization;
    let view = OperatorOrganization {
        org_id: organization.id.clone(),
        name: organization.name.clone(),
        slug: organization.slug.clone(),
        r#type: organization.kind,
        owner_id: created.owner,
    };
    Ok(Versioned::of(&organization, view))
}
