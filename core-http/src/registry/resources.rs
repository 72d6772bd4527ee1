//! Handlers of resources.

use core_domain::kernel::{EntityId, PlatformId, ResourceId, Result};
use core_domain::port::{Stored, UnitOfWork};
use core_domain::registry::Resource;
use core_domain::use_case::registry as use_case;

use super::query::{Deletion, HowToDelete, Success, WhichRows};
use super::resource_shape::{CreateResource, ResourceShape, UpdateResource, WhichName};
use crate::kernel::{Cx, Input, ListP1, Output};

type One = (PlatformId, ResourceId);
type OfEntity = (PlatformId, EntityId);

pub(super) async fn look_up(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(), WhichName>,
) -> Result<Output<ResourceShape>> {
    let found = use_case::look_up_resource(cx, uow, &input.query.cf_name).await?;
    Ok(shown(found))
}

pub(super) async fn list(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId,), WhichRows>,
) -> Result<Output<ListP1<ResourceShape>>> {
    let (platform,) = input.path;
    let deleted = input.query.include_deleted;
    let page = input.query.page();
    let page = use_case::list_resources(cx, uow, &platform, deleted, &page).await?;
    Ok(Output::new(page.map(ResourceShape::from).into()))
}

pub(super) async fn list_of_entity(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<OfEntity, WhichRows>,
) -> Result<Output<ListP1<ResourceShape>>> {
    let (platform, entity) = input.path;
    let deleted = input.query.include_deleted;
    let page = input.query.page();
    let page =
        use_case::list_resources_of_entity(cx, uow, &platform, &entity, deleted, &page).await?;
    Ok(Output::new(page.map(ResourceShape::from).into()))
}

pub(super) async fn create(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<OfEntity, (), CreateResource>,
) -> Result<Output<ResourceShape>> {
    let (platform, entity) = input.path;
    let new = input.body.into();
    let made = use_case::create_resource(cx, uow, &platform, &entity, new).await?;
    Ok(shown(made))
}

pub(super) async fn show(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<One>,
) -> Result<Output<ResourceShape>> {
    let (platform, resource) = input.path;
    Ok(shown(
        use_case::find_resource(cx, uow, &platform, &resource).await?,
    ))
}

pub(super) async fn update(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<One, (), UpdateResource>,
) -> Result<Output<ResourceShape>> {
    let (platform, resource) = input.path;
    cx.expects(&use_case::find_resource(cx, uow, &platform, &resource).await?)?;
    let change = input.body.into();
    let changed = use_case::update_resource(cx, uow, &platform, &resource, change).await?;
    Ok(shown(changed))
}

pub(super) async fn remove(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<One, HowToDelete>,
) -> Result<Output<Deletion<Success>>> {
    let (platform, resource) = input.path;
    cx.expects(&use_case::find_resource(cx, uow, &platform, &resource).await?)?;
    if input.query.dry_run {
        let plan = use_case::plan_resource_removal(cx, uow, &platform, &resource).await?;
        return Ok(Output::new(plan.into()));
    }
    use_case::delete_resource(cx, uow, &platform, &resource).await?;
    Ok(Output::new(Success::DONE))
}

fn shown(resource: Stored<Resource>) -> Output<ResourceShape> {
    let version = resource.version();
    Output::new(resource.into()).version(version)
}
