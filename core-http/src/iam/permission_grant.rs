//! Permissions that are granted to or denied for individual members.

use core_domain::access::{MembershipScope, OrganizationRef, Requirement, authorize_grant};
use core_domain::iam::{Decision, GrantPermission};
use core_domain::kernel::{
    Code, Context, Error, GrantId, Issue, ListQuery, OrganizationId, PermissionPattern,
    PermissionType, Result, Timestamp, UnixSeconds, UserId, permission,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::permission_grant::{self, MemberGrant};
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
            .summary("Lists the grants and denials of an organization.")
            .description(
                "Pages count members who have grants; all grants of a member are on the same \
                 page. The newest member comes first. With `explain=true`, which only operators \
                 may use, the response also says whether `userId` has `permission` and which rule \
                 decides.",
            )
            .refuses(&[Code::Forbidden, Code::NotFound])
            .reads(list),
        post("/api/core/grants", "createGrant")
            .summary("Grants a permission to a member, or denies it.")
            .description(
                "The grant takes effect with the next request of the member. No caller can grant or \
                 deny a permission that they do not have. An expired grant with the same \
                 permission and effect is replaced; an active one is a conflict. The change is \
                 recorded in the audit log.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::NotFound, Code::Conflict, Code::LimitReached])
            .writes(create),
        delete("/api/core/grants/{grantId}", "removeGrant")
            .summary("Removes a grant or denial.")
            .description(
                "The removal takes effect with the next request of the member. A second removal \
                 of the same grant is rejected as not found. The change is recorded in the audit \
                 log.",
            )
            .writes(remove),
    ]
}

/// Filters of the list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GrantFilter {
    /// The organization whose grants are listed.
    org_id: OrganizationId,
    /// Whether the response also contains the decision about `userId` and `permission`. Only for operators. Default:
    /// false.
    #[serde(default)]
    explain: bool,
    /// The member to explain; required with `explain`.
    user_id: Option<UserId>,
    /// The permission to explain; required with `explain`.
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

impl<G: PermissionType, Q: Sync, B: Sync> OpenScope<Input<(GrantId,), Q, B>>
    for MembershipScope<G>
{
    const REQUIREMENT: Requirement = Requirement::Permission(G::PERMISSION);

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a Input<(GrantId,), Q, B>,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize_grant(cx, uow, &input.path.0))
    }
}

/// A grant or denial of a permission.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GrantView {
    /// The id of the grant.
    id: GrantId,
    /// The member who has the grant.
    user_id: UserId,
    /// The organization in which the grant is valid.
    org_id: OrganizationId,
    /// The granted or denied permission, as `resource:action`; `*` matches every resource or action.
    permission: PermissionPattern,
    /// `true` for a grant, `false` for a denial. A denial overrides every grant and role.
    granted: bool,
    /// The user who created the grant.
    granted_by: UserId,
    /// The time at which the grant expires, in Unix seconds; `null` if it does not expire.
    expires_at: Option<UnixSeconds>,
    /// The time at which the grant was created.
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

/// A page of grants and denials, with the explained decision.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct GrantList {
    /// The grants and denials of this page.
    data: Vec<GrantView>,
    /// The cursor of the next page; `null` on the last page.
    cursor: Option<String>,
    /// The explained decision; present only with `explain=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Decision>,
}

async fn list(
    _: &Cx,
    scope: MembershipScope<permission::GrantRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), ListQuery<GrantFilter>>,
) -> Result<Output<GrantList>> {
    let page = input.query.uncounted_page();
    let filter = input.query.filter;
    let decision = if filter.explain {
        Some(explain(&scope, uow, filter.user_id, filter.permission).await?)
    } else {
        None
    };
    let found = permission_grant::list(&scope, uow, &page).await?;
    let members = found.items.into_iter();
    let newest_first = members.flat_map(|grants| grants.into_iter().rev());
    Ok(Output::new(GrantList {
        cursor: found.next.map(|cursor| cursor.0),
        data: newest_first.map(GrantView::from).collect(),
        decision,
    }))
}

async fn explain(
    scope: &MembershipScope<permission::GrantRead>,
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
    permission_grant::explain(scope, uow, &user, &permission).await
}

async fn create(
    cx: &Cx,
    scope: MembershipScope<permission::GrantWrite>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), GrantPermission>,
) -> Result<Output<GrantView>> {
    let created = permission_grant::create(cx, &scope, uow, input.body).await?;
    Ok(Output::new(created.into()))
}

async fn remove(
    cx: &Cx,
    scope: MembershipScope<permission::GrantWrite>,
    uow: &mut dyn UnitOfWork,
    input: Input<(GrantId,)>,
) -> Result<Output<Success>> {
    permission_grant::remove(cx, &scope, uow, &input.path.0).await?;
    Ok(Output::new(Success::YES))
}
