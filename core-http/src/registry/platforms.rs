//! Handlers of platforms and their life.

use core_domain::kernel::{PlatformId, Reason, Result};
use core_domain::port::{Stored, UnitOfWork};
use core_domain::registry::{Platform, PlatformEvent};
use core_domain::use_case::registry as use_case;

use super::platform_shape::{CreatePlatform, LifecycleShape, PlatformShape, UpdatePlatform, Why};
use super::query::{Deletion, HowToDelete, Success, WhichPage, WhichRows};
use crate::kernel::{Cx, Input, ListP1, Output};

pub(super) async fn list(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(), WhichRows>,
) -> Result<Output<ListP1<PlatformShape>>> {
    let deleted = input.query.include_deleted;
    let page = use_case::list_platforms(cx, uow, deleted, &input.query.page()).await?;
    Ok(Output::new(page.map(PlatformShape::from).into()))
}

pub(super) async fn create(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), CreatePlatform>,
) -> Result<Output<PlatformShape>> {
    let made = use_case::create_platform(cx, uow, input.body.into()).await?;
    Ok(shown(made))
}

pub(super) async fn show(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId,)>,
) -> Result<Output<PlatformShape>> {
    Ok(shown(
        use_case::find_platform(cx, uow, &input.path.0).await?,
    ))
}

pub(super) async fn update(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId,), (), UpdatePlatform>,
) -> Result<Output<PlatformShape>> {
    let (id,) = input.path;
    cx.expects(&use_case::find_platform(cx, uow, &id).await?)?;
    let changed = use_case::update_platform(cx, uow, &id, input.body.into()).await?;
    Ok(shown(changed))
}

pub(super) async fn remove(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId,), HowToDelete>,
) -> Result<Output<Deletion<Success>>> {
    let (id,) = input.path;
    cx.expects(&use_case::find_platform(cx, uow, &id).await?)?;
    if input.query.dry_run {
        let plan = use_case::plan_platform_removal(cx, uow, &id, PlatformEvent::Delete).await?;
        return Ok(Output::new(plan.into()));
    }
    use_case::move_platform(cx, uow, &id, PlatformEvent::Delete, None).await?;
    Ok(Output::new(Success::DONE))
}

type Move = Input<(PlatformId,), (), Why>;

pub(super) async fn suspend(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Move,
) -> Result<Output<PlatformShape>> {
    moved(cx, uow, input, PlatformEvent::Suspend).await
}

pub(super) async fn restore(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Move,
) -> Result<Output<PlatformShape>> {
    moved(cx, uow, input, PlatformEvent::Restore).await
}

pub(super) async fn cancel(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Move,
) -> Result<Output<PlatformShape>> {
    moved(cx, uow, input, PlatformEvent::Cancel).await
}

pub(super) async fn hard_delete(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId,), HowToDelete, Why>,
) -> Result<Output<Deletion<PlatformShape>>> {
    let ((id,), reason) = (input.path, input.body.reason);
    let event = PlatformEvent::HardDelete;
    if input.query.dry_run {
        let plan = use_case::plan_platform_removal(cx, uow, &id, event).await?;
        return Ok(Output::new(plan.into()));
    }
    let platform = use_case::move_platform(cx, uow, &id, event, reason.as_ref()).await?;
    let version = platform.version();
    Ok(Output::new(Deletion::Done(platform.into())).version(version))
}

async fn moved(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Move,
    event: PlatformEvent,
) -> Result<Output<PlatformShape>> {
    let (id,) = input.path;
    let reason: Option<Reason> = input.body.reason;
    let platform = use_case::move_platform(cx, uow, &id, event, reason.as_ref()).await?;
    Ok(shown(platform))
}

pub(super) async fn lifecycle(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId,), WhichPage>,
) -> Result<Output<ListP1<LifecycleShape>>> {
    let (id,) = input.path;
    let page = use_case::list_lifecycle(cx, uow, &id, &input.query.into()).await?;
    Ok(Output::new(page.map(LifecycleShape::from).into()))
}

fn shown(platform: Stored<Platform>) -> Output<PlatformShape> {
    let version = platform.version();
    Output::new(platform.into()).version(version)
}
