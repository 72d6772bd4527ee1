//! Platforms that end: their subscriptions end as well. Billing follows the change feed, so the registry does not have to
//! know billing.

use super::book::CustomerBook;
use super::cancellation::{self, Cancellation};
use super::subscription::live_of;
use super::{Billing, feed_position, operation, payment};
use crate::access::SystemScope;
use crate::billing::FeedCursor;
use crate::kernel::{Context, Machine, PlatformId, Reason, Result};
use crate::port::{Store, UnitOfWork, transact};
use crate::registry::PlatformEvent;
use crate::shared::AuditEntry;
use crate::use_case::registry::audit::changes_after;

/// How a change of a platform ends its subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Now,
    WithPeriod,
}

impl End {
    /// Returns how a change ends the subscription of its platform. Returns `None` if it does not.
    fn by(entry: &AuditEntry) -> Option<Self> {
        let is = |event: PlatformEvent| entry.action == event.transition().action;
        if is(PlatformEvent::Delete) || is(PlatformEvent::HardDelete) {
            return Some(Self::Now);
        }
        is(PlatformEvent::Cancel).then_some(Self::WithPeriod)
    }
}

/// Ends the subscriptions of platforms that were deleted or cancelled since the last call: those of deleted ones at once,
/// those of cancelled ones with their period. Returns the number of platforms.
///
/// # Errors
/// `OPERATION_IN_PROGRESS` if the outcome of a charge of such a platform is open. The next call continues there.
pub async fn follow_platforms(cx: &Context, store: &dyn Store, billing: &Billing) -> Result<usize> {
    let mut ended = 0;
    loop {
        let seen = feed_position::position(store, FeedCursor::PLATFORMS).await?;
        let seen = seen.unwrap_or(0);
        let changes = changes_after(store, seen).await?;
        for entry in &changes.entries {
            if let (Some(end), Some(platform)) =
                (End::by(entry), PlatformId::parse(&entry.entity_id))
            {
                transact(store, |uow, _| {
                    let platform = &platform;
                    Box::pin(async move { end_of(cx, uow, billing, platform, end).await })
                })
                .await?;
                ended += 1;
            }
        }
        if changes.position > seen {
            feed_position::advance(store, FeedCursor::PLATFORMS, changes.position).await?;
        }
        if changes.is_last {
            return Ok(ended);
        }
    }
}

/// Ends the subscription of a platform. Does nothing if it has none, or the change was made before.
async fn end_of(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    platform: &PlatformId,
    end: End,
) -> Result<()> {
    let Some(seen) = live_of(uow, platform).await? else {
        return Ok(());
    };
    let now = billing.now(uow).await?;
    if let Some(open) = operation::open_of(uow, &seen.id).await? {
        payment::discard(cx, uow, billing, &open.invoice_id, now).await?;
    }
    let Some(seen) = live_of(uow, platform).await? else {
        return Ok(());
    };
    let scope = &SystemScope::new();
    let reason = Reason::parse(match end {
        End::Now => "The platform was deleted.",
        End::WithPeriod => "The platform was cancelled.",
    });
    if end == End::Now {
        let book = CustomerBook::open(uow, &seen.customer_id, now).await?;
        cancellation::end(cx, scope, uow, billing, book, &seen, reason.ok()).await?;
        return Ok(());
    }
    let cancellation = Cancellation {
        immediately: false,
        reason: reason.ok(),
    };
    cancellation::cancel(cx, scope, uow, billing, &seen, cancellation).await?;
    Ok(())
}
