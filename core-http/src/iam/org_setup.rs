//! A person sets up their organization with its platform.

use std::sync::Arc;

use core_domain::kernel::{
    Error, Name, OrganizationId, PlatformId, Result, SessionId, Slug, UserId,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::resolve_session;
use core_domain::use_case::registry::{OrganizationSetup, organization_setup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::Iam;
use super::identify::bearer;
use crate::kernel::{Cx, Input, Output};

/// The organization to be made.
#[derive(Deserialize, JsonSchema)]
pub(super) struct OrgSetup {
    name: Name,
    slug: Slug,
}

/// The organization and its platform.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrgSetupDone {
    org_id: OrganizationId,
    platform_id: PlatformId,
    slug: Slug,
    name: Name,
}

pub(super) async fn org_setup(
    cx: &Cx,
    iam: Arc<Iam>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), OrgSetup>,
) -> Result<Output<OrgSetupDone>> {
    let (user_id, session_id) = by_cookie(cx, &iam, uow).await?;
    let setup = OrganizationSetup {
        name: input.body.name,
        slug: input.body.slug,
        user_id,
        session_id,
    };
    let done = organization_setup(cx, uow, setup).await?;
    Ok(Output::new(OrgSetupDone {
        org_id: done.org_id,
        platform_id: done.platform_id,
        slug: done.slug,
        name: done.name,
    }))
}

/// The session of the request's cookie; a bearer is not enough here.
async fn by_cookie(cx: &Cx, iam: &Iam, uow: &mut dyn UnitOfWork) -> Result<(UserId, SessionId)> {
    let id = cx.caller.session_id().ok_or(Error::Unauthorized)?;
    if bearer(&cx.headers).is_some() {
        return Err(Error::Unauthorized);
    }
    let token = iam.cookie_token(&cx.headers).ok_or(Error::Unauthorized)?;
    let found = resolve_session(uow, &token).await?;
    let session = found.ok_or(Error::Unauthorized)?.session;
    if session.id == *id {
        Ok((session.user_id.clone(), session.id.clone()))
    } else {
        Err(Error::Unauthorized)
    }
}
