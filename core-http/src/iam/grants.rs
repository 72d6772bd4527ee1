//! Grants and denials of permissions to single members.

use core_domain::access::{MembershipScope, OrganizationRef, Requirement, authorize_grant};
use core_domain::iam::{Decision, GrantPermission};
use core_domain::kernel::{
    Code, Context, Error, Grant, GrantId, Issue, ListQuery, OrganizationId, PermissionPattern,
    Result, Timestamp, UnixSeconds, UserId, grant,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::grant::{self as grants, MemberGrant};
use futures_util::future::BoxFuture;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{
    Cx, Endpoint, Input, OnOrganization, OpenScope, Output, Success, delete, get, post,
};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/core/grants", "listGrants")
            .summary("Grants and denials of an organization; for operators, why a member may.")
            .refuses(&[Code::Forbidden])
            .reads(list),
        post("/api/core/grants", "createGrant")
            .summary("Grants or denies a member a permission.")
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict, Code::LimitReached])
            .writes(create),
        delete("/api/core/grants/{grantId}", "removeGrant")
            .summary("Takes a grant or denial back.")
            .writes(remove),
    ]
}

/// Which grants. A page has those of so many members; members without grants do not count.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GrantFilter {
    /// Of this organization.
    org_id: OrganizationId,
    /// For operators: also say whether the member `userId` has `permission`, and which rule decides.
    #[serde(default)]
    explain: bool,
    user_id: Option<UserId>,
    permission: Option<PermissionPattern>,
}

impl OnOrganization for Input<(), ListQuery<GrantFilter>> {
    fn organization(&self) -> OrganizationRef<'_> {
        OrganizationRef::Id(&self.query.filter.org_id)
    }
}

impl<Q> OnOrganization for Input<(), Q, GrantPermission> {
    fn organization(&self) -> OrganizationRef<'_> {
        OrganizationRef::Id(&self.body.org_id)
    }
}

impl<G: Grant, Q: Sync, B: Sync> OpenScope<Input<(GrantId,), Q, B>> for MembershipScope<G> {
    const REQUIREMENT: Requirement = Requirement::Permission(G::PERMISSION);

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a Input<(GrantId,), Q, B>,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize_grant(cx, uow, &input.path.0))
    }
}

/// A grant or denial.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GrantView {
    id: GrantId,
    user_id: UserId,
    org_id: OrganizationId,
    permission: PermissionPattern,
    granted: bool,
    granted_by: UserId,
    /// Unix seconds.
    expires_at: Option<UnixSeconds>,
    created_at: Timestamp,
}

impl From<MemberGrant> for GrantView {
    fn from(found: MemberGrant) -> Self {
        let grant = found.grant;
        Self {
            id: grant.id,
            user_id: found.member.user_id.clone(),
            org_id: found.member.organization_id.clone(),
            permission: grant.permission,
            granted: grant.granted,
            granted_by: grant.granted_by,
            expires_at: grant.expires_at.map(UnixSeconds),
            created_at: grant.created_at,
        }
    }
}

/// Grants and denials, and the decision that was asked for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct GrantList {
    data: Vec<GrantView>,
    cursor: Option<String>,
    /// Only where `explain` asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Decision>,
}

async fn list(
    _: &Cx,
    scope: MembershipScope<grant::GrantRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), ListQuery<GrantFilter>>,
) -> Result<Output<GrantList>> {
    let page = input.query.page();
    let filter = input.query.filter;
    let decision = if filter.explain {
        Some(explain(&scope, uow, filter.user_id, filter.permission).await?)
    } else {
        None
    };
    let found = grants::list(&scope, uow, &page).await?;
    let members = found.items.into_iter();
    let newest_first = members.flat_map(|grants| grants.into_iter().rev());
    Ok(Output::new(GrantList {
        cursor: found.next.map(|cursor| cursor.0),
        data: newest_first.map(GrantView::from).collect(),
        decision,
    }))
}

async fn explain(
    scope: &MembershipScope<grant::GrantRead>,
    uow: &mut dyn UnitOfWork,
    user: Option<UserId>,
    permission: Option<PermissionPattern>,
) -> Result<Decision> {
    if !scope.is_operator() {
        return Err(Error::Forbidden);
    }
    let (Some(user), Some(permission)) = (user, permission) else {
        let missing = |name| Issue::field(name, "required", "is required with explain");
        return Err(Error::Invalid(vec![
            missing("userId"),
            missing("permission"),
        ]));
    };
    grants::explain(scope, uow, &user, &permission).await
}

async fn create(
    cx: &Cx,
    scope: MembershipScope<grant::GrantWrite>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), GrantPermission>,
) -> Result<Output<GrantView>> {
    let created = grants::create(cx, &scope, uow, input.body).await?;
    Ok(Output::new(created.into()))
}

async fn remove(
    cx: &Cx,
    scope: MembershipScope<grant::GrantWrite>,
    uow: &mut dyn UnitOfWork,
    input: Input<(GrantId,)>,
) -> Result<Output<Success>> {
    grants::remove(cx, &scope, uow, &input.path.0).await?;
    Ok(Output::new(Success::YES))
}
