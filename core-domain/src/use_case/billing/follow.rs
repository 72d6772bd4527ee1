//! Changes that billing follows: platforms that end, whose subscriptions end as well, builds that end, which are usage, and
//! usage that reaches a part of the included quantity, which the customer is notified. Billing reads the change feed, so the others do not have to know billing.

use super::book::CustomerBook;
use super::cancellation::{self, Cancellation};
use super::news::{self, News};
use super::subscription::live_of;
use super::{Billing, build_usage, feed_position, operation, payment};
use crate::access::{SystemScope, unaudited, unowned_records};
use crate::billing::usage::{AlertSeverity, NewUsageEvent, UsageAlert};
use crate::billing::{Customer, CustomerQuery, FeedCursor};
use crate::kernel::{Context, Machine, PlatformId, Reason, Result};
use crate::port::{Store, UnitOfWork, transact};
use crate::registry::PlatformEvent;
use crate::shared::AuditEntry;
use crate::use_case::registry::audit::changes_after;
use crate::use_case::shared::usage::THRESHOLD_CROSSED;

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

/// The reaction of billing to a change.
#[derive(Clone, Debug)]
enum Reaction {
    /// The subscription of a platform ends.
    End(PlatformId, End),
    /// The customer is notified about an alert.
    Tell(String),
    /// A build or a deployment counts.
    Count(NewUsageEvent),
}

impl Reaction {
    /// Returns what billing does about a change. Returns `None` for most changes.
    fn to(entry: &AuditEntry) -> Option<Self> {
        if entry.action == THRESHOLD_CROSSED {
            return Some(Self::Tell(entry.entity_id.clone()));
        }
        if let Some(usage) = build_usage::ended_by(entry) {
            return Some(Self::Count(usage));
        }
        let end = End::by(entry)?;
        Some(Self::End(PlatformId::parse(&entry.entity_id)?, end))
    }
}

/// Follows the changes since the last call. Ends the subscriptions of deleted platforms at once, and those of cancelled
/// ones with their period. Counts ended builds and deployments as usage. Tells customers once that usage has reached a threshold of 80 percent or more. Returns the
/// number of followed changes.
///
/// # Errors
/// `OPERATION_IN_PROGRESS` if the outcome of a charge of such a platform is open. The next call continues there.
pub async fn follow_changes(cx: &Context, store: &dyn Store, billing: &Billing) -> Result<usize> {
    let mut followed = 0;
    loop {
        let seen = feed_position::position(store, FeedCursor::PLATFORMS).await?;
        let seen = seen.unwrap_or(0);
        let changes = changes_after(store, seen).await?;
        for entry in &changes.entries {
            let Some(reaction) = Reaction::to(entry) else {
                continue;
            };
            transact(store, |uow, _| {
                let reaction = &reaction;
                Box::pin(async move {
                    match reaction {
                        Reaction::End(platform, end) => {
                            end_of(cx, uow, billing, platform, *end).await
                        }
                        Reaction::Tell(alert) => tell_of(cx, uow, billing, alert).await,
                        Reaction::Count(usage) => {
                            build_usage::report(cx, uow, billing, usage).await
                        }
                    }
                })
            })
            .await?;
            followed += 1;
        }
        if changes.position > seen {
            feed_position::advance(store, FeedCursor::PLATFORMS, changes.position).await?;
        }
        if changes.is_last {
            return Ok(followed);
        }
    }
}

/// Tells the customer of a platform about an alert. Does nothing if that was done before, if the alert is only for
/// information, or if the platform has no customer.
async fn tell_of(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    alert: &str,
) -> Result<()> {
    let Some(seen) = unowned_records::<UsageAlert>(uow).find(alert).await? else {
        return Ok(());
    };
    if seen.is_told || seen.severity == AlertSeverity::Info {
        return Ok(());
    }
    let mut next = seen.edit();
    next.is_told = true;
    let seen = unaudited::replace(uow, &seen, next).await?;
    let of_platform = CustomerQuery::OfPlatform(seen.platform_id.clone());
    let customer = unowned_records::<Customer>(uow).first(&of_platform).await?;
    match customer {
        Some(customer) => {
            news::tell(
                cx,
                uow,
                billing,
                &customer,
                News::UsageReached(&seen, billing.currency()),
            )
            .await
        }
        None => Ok(()),
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
        let book = CustomerBook::open(uow, &seen.customer_id, now).await?;
        payment::discard(cx, uow, billing, &open.invoice_id, book).await?;
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
