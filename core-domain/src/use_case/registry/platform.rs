//! Platforms: creates, lists and updates them, and changes their status: suspend, restore, cancel, delete, remove
//! permanently.

use serde_json::json;

use super::jobs::queue_sync;
use super::provision;
use super::slug::{ensure_not_reserved, slug_conflict};
use crate::access::{
    Covers, OrganizationScope, PlatformScope, PlatformWriter, Reach, SystemScope, audited,
    ensure_fresh, ensure_not_deleted, ensure_room_unless_operator, unaudited, unowned_records,
};
use crate::iam::{PlatformSuspension, SuspensionSource};
use crate::kernel::{
    Context, DeletedFilter, Error, LifecycleId, ListQuery, Machine, NoFilter, Page, PlatformId,
    Reason, Result, Stored, Timestamp, Unowned, permission,
};
use crate::port::UnitOfWork;
use crate::registry::{
    CreatePlatform, LifecycleQuery, LifecycleRecord, Platform, PlatformEvent, PlatformOwner,
    PlatformQuery, PlatformStatus, Tier, UpdatePlatform,
};
use crate::use_case::provisioning::Kinds;
use crate::use_case::shared::send;
use crate::use_case::{iam, provisioning};

/// Creates a platform. If a person creates it, it belongs to the organization that they act for.
///
/// # Errors
/// - `SLUG_TAKEN` if the slug is taken or reserved.
/// - `LIMIT_REACHED` if the organization has its maximum number of platforms.
/// - `FORBIDDEN` if the caller acts for no organization, or requests a tier above `starter` without being an operator.
pub async fn create(
    cx: &Context,
    scope: &OrganizationScope<permission::PlatformCreate>,
    uow: &mut dyn UnitOfWork,
    command: CreatePlatform,
) -> Result<Stored<Platform>> {
    let raised = command.tier != Tier::Starter && !cx.caller.is_operator();
    if raised || *scope.reach() == Reach::Nowhere {
        return Err(Error::Forbidden);
    }
    ensure_not_reserved(uow, &command.slug).await?;
    let now = uow.now().await?;
    let owner = PlatformOwner {
        user_id: cx.caller.user_id().cloned(),
        organization_id: cx.caller.membership().map(|m| m.organization_id.clone()),
    };
    let id = PlatformId::generate(now, cx.entropy.as_ref());
    insert_platform(cx, scope, uow, id, owner, command).await
}

/// Lists the platforms that the caller can access, newest first. Only operators can include deleted platforms.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list(
    cx: &Context,
    scope: &OrganizationScope<permission::PlatformRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<DeletedFilter>,
) -> Result<Page<Stored<Platform>>> {
    let platforms = match scope.reach() {
        Reach::Nowhere => return Ok(Page::empty()),
        Reach::Installation => PlatformQuery::All {
            deleted: query.filter.include_deleted && cx.caller.is_operator(),
        },
        Reach::Organization(organization) => PlatformQuery::Of(organization.clone()),
        Reach::Platform(platform) => PlatformQuery::WithId(platform.clone()),
    };
    unowned_records::<Platform>(uow)
        .page(&platforms, &query.page())
        .await
}

/// Returns the platform. A deleted platform can be read until it is removed permanently.
#[must_use]
pub fn get(scope: &PlatformScope<permission::PlatformRead>) -> Stored<Platform> {
    scope.platform().clone()
}

/// Lists the status changes of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn lifecycle(
    scope: &PlatformScope<permission::PlatformRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<NoFilter>,
) -> Result<Page<Stored<LifecycleRecord>>> {
    let records = scope.records::<LifecycleRecord>(uow);
    records.page(&LifecycleQuery::All, &query.page()).await
}

/// Creates a platform with its first lifecycle record.
///
/// # Errors
/// `SLUG_TAKEN` if the slug is taken; `LIMIT_REACHED` if the organization has its maximum number of platforms.
pub(in crate::use_case::registry) async fn insert_platform(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    id: PlatformId,
    owner: PlatformOwner,
    command: CreatePlatform,
) -> Result<Stored<Platform>> {
    if let Some(organization) = &owner.organization_id {
        let existing = PlatformQuery::Of(organization.clone());
        let limit = cx.limits.platforms_per_organization;
        let message =
            "The organization has reached its maximum number of platforms. Delete one first.";
        ensure_room_unless_operator::<Platform>(
            cx,
            unowned_records(uow),
            &existing,
            limit,
            message,
        )
        .await?;
    }
    let now = uow.now().await?;
    let platform = Platform::create(id, owner, command, now);
    let stored = audited::insert(cx, scope, uow, platform, "platform.created").await;
    let stored = stored.map_err(slug_conflict)?;
    record_lifecycle(cx, uow, &stored, None, None, None).await?;
    notify(cx, uow, &stored).await?;
    Ok(stored)
}

/// Stores a lifecycle record of a status change.
async fn record_lifecycle(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    after: &Platform,
    from: Option<PlatformStatus>,
    event: Option<PlatformEvent>,
    reason: Option<&Reason>,
) -> Result<()> {
    let now = uow.now().await?;
    let event = event.map_or("create", PlatformEvent::as_str);
    let record = LifecycleRecord {
        id: LifecycleId::generate(now, cx.entropy.as_ref()),
        platform_id: after.id.clone(),
        from_status: from,
        to_status: after.status,
        triggered_by: cx.caller.actor_id().to_owned(),
        trigger_type: cx.caller.kind().to_owned(),
        reason: reason.cloned(),
        metadata: json!({ "requestId": cx.request.request_id, "event": event }),
        created_at: now,
    };
    unaudited::append(uow, record).await
}

/// Notifies other services of the platform's current status.
async fn notify(cx: &Context, uow: &mut dyn UnitOfWork, platform: &Platform) -> Result<()> {
    let payload = json!({
        "platformId": platform.id,
        "status": platform.status,
        "suspended": platform.is_suspended(),
    });
    send(cx, uow, "platform.status", payload).await
}

/// Suspends a platform's traffic or ends that suspension. The platform's own status does not change.
///
/// The gateway refuses callers of a suspended platform. The platform's jobs are held or released. Both take effect with
/// the commit. A job starts or stops serving the platform's hostnames.
///
/// # Errors
/// Only those of the store.
pub async fn set_suspension(
    cx: &Context,
    scope: &PlatformScope<permission::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    suspended: bool,
    reason: Option<&Reason>,
) -> Result<()> {
    iam::suspension::set_suspended(cx, scope.writer(), uow, suspended, reason).await?;
    provisioning::sync_suspension_hold(cx, scope.writer(), uow, suspended, reason).await?;
    queue_sync(cx, scope.writer(), uow).await
}

/// Sets or ends the suspension as part of a larger operation. Writes no audit entry of its own and does not queue the
/// job for the hostnames.
async fn apply_suspension(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    source: Option<SuspensionSource>,
    reason: Option<&Reason>,
) -> Result<()> {
    iam::suspension::set_flag(scope, uow, source, reason).await?;
    provisioning::sync_suspension_hold(cx, scope, uow, source.is_some(), reason).await
}

/// Suspends a platform: the gateway refuses its callers, and its jobs are held.
///
/// # Errors
/// `INVALID_STATE` if the platform is not active; `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn suspend(
    cx: &Context,
    scope: &PlatformScope<permission::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    reason: Option<&Reason>,
) -> Result<Stored<Platform>> {
    let by_billing = |flag: &PlatformSuspension| flag.by_billing && !flag.by_operator;
    if cx.caller.is_operator() && scope.suspension().is_some_and(by_billing) {
        cx.check_if_match(scope.platform())?;
        // A payment must not end the suspension by the operator.
        iam::suspension::set_suspended(cx, scope.writer(), uow, true, reason).await?;
        return Ok(scope.platform().clone());
    }
    apply(cx, scope.writer(), uow, PlatformEvent::Suspend, reason).await
}

/// Restores a suspended, cancelled or deleted platform. Only an operator can restore a platform that an operator
/// suspended.
///
/// # Errors
/// - `INVALID_STATE` if the platform is active, was deleted more than 30 days ago, or is being removed permanently.
/// - `SLUG_TAKEN` if the platform was deleted and its slug is now taken.
/// - `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn restore(
    cx: &Context,
    scope: &PlatformScope<permission::PlatformRestore>,
    uow: &mut dyn UnitOfWork,
    reason: Option<&Reason>,
) -> Result<Stored<Platform>> {
    apply(cx, scope.writer(), uow, PlatformEvent::Restore, reason).await
}

/// Cancels a platform.
///
/// # Errors
/// `INVALID_STATE` if the platform is neither active nor suspended; `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn cancel(
    cx: &Context,
    scope: &PlatformScope<permission::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    reason: Option<&Reason>,
) -> Result<Stored<Platform>> {
    apply(cx, scope.writer(), uow, PlatformEvent::Cancel, reason).await
}

/// Deletes a platform. It can be restored for 30 days.
///
/// # Errors
/// `INVALID_STATE` if the platform is already deleted; `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn delete(
    cx: &Context,
    scope: &PlatformScope<permission::PlatformManage>,
    uow: &mut dyn UnitOfWork,
) -> Result<Stored<Platform>> {
    apply(cx, scope.writer(), uow, PlatformEvent::Delete, None).await
}

/// Deletes a platform whose onboarding is undone. Returns whether it was not deleted yet.
pub(in crate::use_case::registry) async fn delete_for_undo(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
) -> Result<bool> {
    if scope.platform().status == PlatformStatus::Deleted {
        return Ok(false);
    }
    apply(cx, scope, uow, PlatformEvent::Delete, None).await?;
    Ok(true)
}

/// Removes a platform permanently with everything that belongs to it.
///
/// The platform is deleted at once, and a job removes its infrastructure and then its records. Unfinished jobs of the
/// platform are cancelled. If the removal has failed, an operator can call this again to resume it.
///
/// # Errors
/// `STEP_UP_REQUIRED` if the caller must authenticate again; `INVALID_STATE` if the removal is already in progress;
/// `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn hard_delete(
    cx: &Context,
    scope: &PlatformScope<permission::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    reason: Option<&Reason>,
) -> Result<Stored<Platform>> {
    ensure_fresh(cx, uow).await?;
    cx.check_if_match(scope.platform())?;
    if scope.platform().purging && cx.caller.is_operator() {
        let cx = &cx.without_conditions();
        provision::resume_removal(cx, scope.writer(), uow, kinds).await?;
        return Ok(scope.platform().clone());
    }
    let stored = apply(cx, scope.writer(), uow, PlatformEvent::HardDelete, reason).await?;
    let why = "The platform is being removed for good.";
    // The deprovisioning job cancels the remaining jobs. It runs before them, because it is at the front of the lane.
    let more = provisioning::cancel_batch(cx, scope.writer(), uow, kinds, None, why).await?;
    provision::queue_removal(cx, scope.writer(), uow, more).await?;
    Ok(stored)
}

/// Applies an event to a platform with all its consequences: lifecycle record, audit entry, suspension, notification.
/// All of them are part of one unit of work.
async fn apply(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    event: PlatformEvent,
    reason: Option<&Reason>,
) -> Result<Stored<Platform>> {
    cx.check_if_match(scope.platform())?;
    let now = uow.now().await?;
    let next = scope.platform().edit().after(event, reason, now)?;
    let why = Why {
        event,
        reason,
        source: iam::suspension::source_of(cx),
    };
    store_transition(cx, scope, uow, next, &why).await
}

/// The cause of a change of a platform's status.
struct Why<'r> {
    event: PlatformEvent,
    reason: Option<&'r Reason>,
    /// The source of the suspension, if the event suspends the platform.
    source: SuspensionSource,
}

/// Stores a platform after an event, with the consequences of the event.
async fn store_transition(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    next: Platform,
    why: &Why<'_>,
) -> Result<Stored<Platform>> {
    let &Why {
        event,
        reason,
        source,
    } = why;
    let seen = scope.platform();
    if seen.status == PlatformStatus::Deleted && next.status != PlatformStatus::Deleted {
        ensure_not_reserved(uow, &seen.slug).await?;
    }
    let action = event.transition().action;
    let stored = audited::replace(cx, scope, uow, seen, next, action).await;
    let stored = stored.map_err(slug_conflict)?;
    record_lifecycle(cx, uow, &stored, Some(seen.status), Some(event), reason).await?;
    // An active platform is never suspended, even if the flag was set by another operation.
    if seen.is_suspended() != stored.is_suspended() || stored.status == PlatformStatus::Active {
        let source = stored.is_suspended().then_some(source);
        apply_suspension(cx, scope, uow, source, reason).await?;
    }
    let is_deleted = |platform: &Platform| platform.status == PlatformStatus::Deleted;
    let is_other =
        seen.is_suspended() != stored.is_suspended() || is_deleted(seen) != is_deleted(&stored);
    if is_other && !stored.purging {
        queue_sync(cx, scope, uow).await?;
    }
    notify(cx, uow, &stored).await?;
    Ok(stored)
}

/// Updates a platform. The status can be changed from any other one; that requires the permission `platform:manage`.
///
/// # Errors
/// - `FORBIDDEN` if the tier changes and the caller is not an operator, or if the caller may not change the status.
/// - `INVALID_STATE` if the platform is deleted and the update does not restore it.
/// - `SLUG_TAKEN` if the update restores a deleted platform and its slug is now taken.
/// - `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn update(
    cx: &Context,
    scope: &PlatformScope<permission::PlatformUpdate>,
    uow: &mut dyn UnitOfWork,
    command: UpdatePlatform,
) -> Result<Stored<Platform>> {
    let seen = scope.platform();
    cx.check_if_match(seen)?;
    let mut next = seen.edit();
    if let Some(tier) = command.tier.filter(|tier| *tier != seen.tier) {
        if !cx.caller.is_operator() {
            return Err(Error::Forbidden);
        }
        next.tier = tier;
    }
    let wanted = command.status.map(|status| status.event());
    let event = wanted.filter(|(status, _)| *status != seen.status);
    command.apply_to(&mut next);
    let Some((_, event)) = event else {
        if next != **seen {
            ensure_not_deleted(seen)?;
        }
        return audited::replace(cx, scope, uow, seen, next, "platform.updated").await;
    };
    scope.also::<permission::PlatformManage>(cx, uow).await?;
    let now = uow.now().await?;
    let next = next.after(event, None, now)?;
    let why = Why {
        event,
        reason: None,
        source: iam::suspension::source_of(cx),
    };
    store_transition(cx, scope.writer(), uow, next, &why).await
}

/// The reason of a suspension by billing.
const PAYMENT_OVERDUE: &str = "payment_overdue";

/// Suspends a platform whose invoices are not paid. Does nothing if the platform is gone, deleted or cancelled.
///
/// # Errors
/// Only those of the store.
pub(in crate::use_case) async fn suspend_for_debt(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<()> {
    let Some(writer) = SystemScope::new().platform(uow, platform).await? else {
        return Ok(());
    };
    let reason = Reason::parse(PAYMENT_OVERDUE).ok();
    let source = SuspensionSource::Billing;
    match writer.platform().status {
        PlatformStatus::Suspended => {
            iam::suspension::set_flag(&writer, uow, Some(source), reason.as_ref()).await?;
        }
        PlatformStatus::Active => {
            let why = Why {
                event: PlatformEvent::Suspend,
                reason: reason.as_ref(),
                source,
            };
            let now = uow.now().await?;
            let next = writer.platform().edit().after(why.event, why.reason, now)?;
            let cx = &cx.without_conditions();
            store_transition(cx, &writer, uow, next, &why).await?;
        }
        PlatformStatus::Cancelled | PlatformStatus::Deleted => {}
    }
    Ok(())
}

/// Ends the suspension by billing. The platform stays suspended if its owner or an operator has suspended it as well.
///
/// # Errors
/// Only those of the store.
pub(in crate::use_case) async fn restore_after_payment(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<()> {
    let Some(writer) = SystemScope::new().platform(uow, platform).await? else {
        return Ok(());
    };
    if iam::suspension::remove_billing(&writer, uow).await? {
        return Ok(());
    }
    let is_suspended = writer.platform().status == PlatformStatus::Suspended;
    let by_billing = writer.suspension().is_some_and(|flag| flag.by_billing);
    if is_suspended && by_billing {
        let cx = &cx.without_conditions();
        apply(cx, &writer, uow, PlatformEvent::Restore, None).await?;
    }
    Ok(())
}

/// Sets the fields of a platform that billing decides about: its tier, the end of its trial, and its customer at the payment provider.
/// Does nothing if the platform is gone.
///
/// # Errors
/// Only those of the store.
pub(in crate::use_case) async fn follow_subscription(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    billed: BilledPlatform,
) -> Result<()> {
    let Some(seen) = unowned_records::<Platform>(uow).find(platform).await? else {
        return Ok(());
    };
    let mut next = seen.edit();
    next.tier = billed.tier;
    next.trial_ends_at = billed.trial_ends_at;
    next.payment_customer_id = billed.payment_customer_id;
    let cx = &cx.without_conditions();
    audited::replace(cx, scope, uow, &seen, next, "platform.updated").await?;
    Ok(())
}

/// The fields of a platform that billing sets.
#[derive(Clone, Debug)]
pub(in crate::use_case) struct BilledPlatform {
    pub(in crate::use_case) tier: Tier,
    /// The end of the current trial; `None` outside of a trial.
    pub(in crate::use_case) trial_ends_at: Option<Timestamp>,
    pub(in crate::use_case) payment_customer_id: Option<String>,
}
