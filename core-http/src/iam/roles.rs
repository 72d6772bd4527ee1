//! What the roles of an organization allow.

use core_domain::access::{MembershipScope, OrganizationRef};
use core_domain::iam::MapRole;
use core_domain::kernel::{Code, OrganizationId, Result, Role, grant};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::role::{self, MappedRole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{
    Cx, Data, Endpoint, Input, OnOrganization, Output, Success, delete, get, post,
};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/core/roles", "listRoles")
            .summary("The roles of an organization and what they allow.")
            .reads(list),
        post("/api/core/roles", "mapRole")
            .summary("Maps a role to permissions, in place of what it was mapped to.")
            .refuses(&[Code::LimitReached])
            .writes(map),
        delete("/api/core/roles/{orgId}/{role}", "unmapRole")
            .summary("Takes a mapping away; a built-in role allows what it allows by itself again.")
            .writes(unmap),
    ]
}

/// Of which organization.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RolesQuery {
    org_id: OrganizationId,
}

impl OnOrganization for Input<(), RolesQuery> {
    fn organization(&self) -> OrganizationRef<'_> {
        OrganizationRef::Id(&self.query.org_id)
    }
}

impl<Q> OnOrganization for Input<(), Q, MapRole> {
    fn organization(&self) -> OrganizationRef<'_> {
        OrganizationRef::Id(&self.body.org_id)
    }
}

/// A role of an organization.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RoleView {
    org_id: OrganizationId,
    role: Role,
    /// What it allows, sorted.
    permissions: Vec<String>,
    /// Whether every organization has it.
    built_in: bool,
    /// Whether the organization has said what it allows.
    mapped: bool,
}

impl RoleView {
    fn new(organization: &OrganizationId, role: MappedRole) -> Self {
        Self {
            org_id: organization.clone(),
            built_in: Role::BUILT_IN.contains(&role.role),
            role: role.role,
            permissions: role.permissions,
            mapped: role.mapped,
        }
    }
}

async fn list(
    _: &Cx,
    scope: MembershipScope<grant::RoleRead>,
    _: &mut dyn UnitOfWork,
    input: Input<(), RolesQuery>,
) -> Result<Output<Data<RoleView>>> {
    let roles = role::list(&scope).into_iter();
    let views = roles.map(|role| RoleView::new(&input.query.org_id, role));
    Ok(Output::new(Data {
        data: views.collect(),
    }))
}

async fn map(
    cx: &Cx,
    scope: MembershipScope<grant::RoleWrite>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), MapRole>,
) -> Result<Output<RoleView>> {
    let mapped = role::map(cx, &scope, uow, input.body).await?;
    Ok(Output::new(RoleView::new(&scope.organization().id, mapped)))
}

async fn unmap(
    cx: &Cx,
    scope: MembershipScope<grant::RoleWrite>,
    uow: &mut dyn UnitOfWork,
    input: Input<(OrganizationId, Role)>,
) -> Result<Output<Success>> {
    role::unmap(cx, &scope, uow, &input.path.1).await?;
    Ok(Output::new(Success::YES))
}
