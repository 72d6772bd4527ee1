//! The operator organization.

use core_domain::iam::OrganizationType;
use core_domain::kernel::{Email, Error, Name, OrganizationId, Result, Slug, UserId};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam as use_case;
use core_domain::use_case::iam::Owner;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{Cx, Input, Output};

/// The body; every field may be left out. `ownerId` wins over `email`; without both, the organization has no members and
/// the service key alone operates the installation.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BootstrapBody {
    /// What people call it; `Core Operator` when not said.
    name: Option<Name>,
    /// Its name in addresses; `core-operator` when not said.
    slug: Option<Slug>,
    owner_id: Option<UserId>,
    email: Option<Email>,
}

/// The operator organization.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bootstrapped {
    org_id: OrganizationId,
    name: Name,
    slug: Slug,
    r#type: OrganizationType,
    owner_id: Option<UserId>,
}

pub(super) async fn bootstrap(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), BootstrapBody>,
) -> Result<Output<Bootstrapped>> {
    let body = input.body;
    let owner = match (body.owner_id, body.email) {
        (Some(id), _) => Owner::User(id),
        (None, Some(email)) => Owner::Email(email),
        (None, None) => Owner::Nobody,
    };
    let wanted = use_case::Bootstrap {
        name: body.name.map_or_else(default_name, Ok)?,
        slug: body.slug.map_or_else(default_slug, Ok)?,
        owner,
    };
    let made = use_case::bootstrap(cx, uow, &wanted).await?;
    let organization = made.organization;
    let answer = Bootstrapped {
        org_id: organization.id.clone(),
        name: organization.name.clone(),
        slug: organization.slug.clone(),
        r#type: organization.kind,
        owner_id: made.owner,
    };
    Ok(Output::new(answer).version(organization.version()))
}

fn default_name() -> Result<Name> {
    Name::parse("Core Operator").map_err(|error| Error::Internal(error.to_string()))
}

fn default_slug() -> Result<Slug> {
    Slug::parse("core-operator").map_err(|error| Error::Internal(error.to_string()))
}
