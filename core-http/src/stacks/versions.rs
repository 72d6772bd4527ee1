//! Handlers of versions. The digest of a version's definition is its entity tag.

use core_domain::kernel::Result;
use core_domain::port::UnitOfWork;
use core_domain::stacks::SemVer;
use core_domain::use_case::stacks::{self, NewVersion};

use super::shape::{Done, Made, PublishVersion, VersionItem};
use crate::kernel::{Counted, Cx, Input, Output};

pub(super) async fn list(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(String,)>,
) -> Result<Output<Counted<VersionItem>>> {
    let (name,) = input.path;
    let (versions, total) = stacks::list_versions(cx, uow, &name).await?;
    let data = versions.into_iter().map(VersionItem::from).collect();
    Ok(Output::new(Counted { data, total }))
}

pub(super) async fn publish(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(String,), (), PublishVersion>,
) -> Result<Output<Made>> {
    let (name,) = input.path;
    let new = NewVersion {
        version: input.body.version,
        stack_definition: input.body.stack_definition,
        core_sdk_version: input.body.core_sdk_version,
    };
    let version = stacks::publish(cx, uow, &name, new).await?;
    let id = version.id.to_string();
    Ok(Output::new(Made { id }).tag(&version.digest))
}

pub(super) async fn show(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(String, SemVer)>,
) -> Result<Output<VersionItem>> {
    let (name, version) = input.path;
    let version = stacks::find_version(cx, uow, &name, &version).await?;
    let digest = version.digest.clone();
    Ok(Output::new(version.into()).tag(digest))
}

pub(super) async fn deprecate(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(String, SemVer)>,
) -> Result<Output<Done>> {
    let (name, version) = input.path;
    cx.expects_tag(&stacks::find_version(cx, uow, &name, &version).await?.digest)?;
    stacks::deprecate(cx, uow, &name, &version).await?;
    Ok(Output::new(Done { ok: true }))
}
