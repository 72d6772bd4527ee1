//! The notice that the card of a customer expires.

use super::Billing;
use super::news::{self, News};
use crate::access::{unaudited, unowned_records};
use crate::billing::{Customer, Subscription, SubscriptionQuery};
use crate::kernel::{Context, CustomerId, Result, Stored, Timestamp};
use crate::port::UnitOfWork;

/// The most subscriptions of a customer that are looked at.
const MAX_SUBSCRIPTIONS: u32 = 100;

/// Tells a customer that the default card expires. Does nothing if that was done, or no subscription needs the card.
pub(super) async fn tell(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    customer: &CustomerId,
    at: Timestamp,
) -> Result<()> {
    let seen = unowned_records::<Customer>(uow).get(customer).await?;
    if seen.card_notice_at != Some(at) {
        return Ok(());
    }
    let mut next = seen.edit();
    next.card_notice_at = None;
    let seen = unaudited::replace(uow, &seen, next).await?;
    let all = SubscriptionQuery::Of(customer.clone());
    let all = unowned_records::<Subscription>(uow)
        .list(&all, MAX_SUBSCRIPTIONS)
        .await?;
    let is_live = |subscription: &Stored<Subscription>| subscription.status.is_live();
    match &seen.default_card {
        Some(card) if all.iter().any(is_live) => {
            news::tell(cx, uow, billing, &seen, News::CardExpires(card)).await
        }
        _ => Ok(()),
    }
}
