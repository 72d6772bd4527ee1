//! The permissions of an organization's roles.

use core_domain::access::{MembershipScope, OrganizationRef};
use core_domain::iam::MapRole;
use core_domain::kernel::{Code, OrganizationId, Result, Role, permission};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::role_mapping::{self, MappedRole};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{
    Cx, Data, Endpoint, Input, OnOrganization, Output, Success, call_with_id, delete, get, post,
};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/core/roles", "listRoles")
            .summary("Lists the roles of an organization and their permissions.")
            .description(
                "Returns the built-in roles first, then the organization's own roles by name.",
            )
            .refuses(&[Code::NotFound])
            .reads(list),
        post("/api/core/roles", "mapRole")
            .summary("Sets the permissions of a role.")
            .description(
                "Replaces the permissions of the role; a role that does not exist is created. The \
                 change takes effect with the next request of each member. Setting the same \
                 permissions again changes nothing. No caller can give a role permissions that they \
                 do not have themselves.",
            )
            .refuses(&[Code::NotFound, Code::LimitReached])
            .writes(map),
        delete("/api/core/roles/{orgId}/{role}", "unmapRole")
            .summary("Removes the permissions that were set for a role.")
            .description(
                "A built-in role gets its default permissions back; any other role no longer \
                 allows anything. The change takes effect with the next request of each member. A \
                 second removal is rejected as not found.",
            )
            .writes(call_with_id(role_mapping::unmap).map(|_| Output::new(Success::YES))),
    ]
}

/// Selects the organization.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RolesQuery {
    /// The organization whose roles are listed.
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
    /// The organization that the role belongs to.
    org_id: OrganizationId,
    /// The name of the role.
    role: Role,
    /// The permissions of the role, sorted.
    permissions: Vec<String>,
    /// Whether the role exists in every organization.
    built_in: bool,
    /// Whether the organization set the permissions. If false, they are the defaults.
    mapped: bool,
}

impl RoleView {
    fn new(organization: &OrganizationId, role: MappedRole) -> Self {
        Self {
            org_id: organization.clone(),
            built_in: Role::BUILT_IN.contains(&role.role),
            role: role.role,
            permissions: role.permissions,
            mapped: role.is_mapped,
        }
    }
}

async fn list(
    _: &Cx,
    scope: MembershipScope<permission::RoleRead>,
    _: &mut dyn UnitOfWork,
    input: Input<(), RolesQuery>,
) -> Result<Output<Data<RoleView>>> {
    let roles = role_mapping::list(&scope).into_iter();
    let views = roles.map(|role| RoleView::new(&input.query.org_id, role));
    Ok(Output::new(Data {
        data: views.collect(),
    }))
}

async fn map(
    cx: &Cx,
    scope: MembershipScope<permission::RoleWrite>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), MapRole>,
) -> Result<Output<RoleView>> {
    let mapped = role_mapping::map(cx, &scope, uow, input.body).await?;
    Ok(Output::new(RoleView::new(&scope.organization().id, mapped)))
}
