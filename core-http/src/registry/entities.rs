//! Handlers of entities.

use core_domain::kernel::{EntityId, PlatformId, Result};
use core_domain::port::{Stored, UnitOfWork};
use core_domain::registry::Entity;
use core_domain::use_case::registry as use_case;

use super::entity_shape::{
    CreateEntity, EntityShape, HowToDeleteEntity, UpdateEntity, WhichEntities,
};
use super::query::{Data, Deletion, Success};
use crate::kernel::{Cx, Input, ListP1, Output, page_request};

type One = (PlatformId, EntityId);

pub(super) async fn list(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId,), WhichEntities>,
) -> Result<Output<ListP1<EntityShape>>> {
    let (platform, query) = (input.path.0, input.query);
    let page = page_request(query.limit.0, query.cursor);
    let (kind, deleted) = (query.entity_type, query.include_deleted);
    let page = use_case::list_entities(cx, uow, &platform, kind, deleted, &page).await?;
    Ok(Output::new(page.map(EntityShape::from).into()))
}

pub(super) async fn create(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId,), (), CreateEntity>,
) -> Result<Output<EntityShape>> {
    let (platform,) = input.path;
    let made = use_case::create_entity(cx, uow, &platform, input.body.into()).await?;
    Ok(shown(made))
}

pub(super) async fn show(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<One>,
) -> Result<Output<EntityShape>> {
    let (platform, entity) = input.path;
    Ok(shown(
        use_case::find_entity(cx, uow, &platform, &entity).await?,
    ))
}

pub(super) async fn update(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<One, (), UpdateEntity>,
) -> Result<Output<EntityShape>> {
    let (platform, entity) = input.path;
    cx.expects(&use_case::find_entity(cx, uow, &platform, &entity).await?)?;
    let change = input.body.into();
    let changed = use_case::update_entity(cx, uow, &platform, &entity, change).await?;
    Ok(shown(changed))
}

pub(super) async fn remove(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<One, HowToDeleteEntity>,
) -> Result<Output<Deletion<Success>>> {
    let ((platform, entity), how) = (input.path, input.query);
    cx.expects(&use_case::find_entity(cx, uow, &platform, &entity).await?)?;
    if how.dry_run {
        let plan = use_case::plan_entity_removal(cx, uow, &platform, &entity, how.cascade);
        return Ok(Output::new(plan.await?.into()));
    }
    use_case::delete_entity(cx, uow, &platform, &entity, how.cascade).await?;
    Ok(Output::new(Success::DONE))
}

pub(super) async fn ancestors(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<One>,
) -> Result<Output<Data<EntityShape>>> {
    let (platform, entity) = input.path;
    let above = use_case::ancestors(cx, uow, &platform, &entity).await?;
    Ok(whole(above))
}

pub(super) async fn descendants(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<One>,
) -> Result<Output<Data<EntityShape>>> {
    let (platform, entity) = input.path;
    let below = use_case::descendants(cx, uow, &platform, &entity).await?;
    Ok(whole(below))
}

fn whole(entities: Vec<Stored<Entity>>) -> Output<Data<EntityShape>> {
    Output::new(Data {
        data: entities.into_iter().map(EntityShape::from).collect(),
    })
}

fn shown(entity: Stored<Entity>) -> Output<EntityShape> {
    let version = entity.version();
    Output::new(entity.into()).version(version)
}
