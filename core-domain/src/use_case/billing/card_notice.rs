//! The notice that the card of a customer expires.

use super::Billing;
use super::book::CustomerBook;
use super::news::{self, News};
use crate::access::unowned_records;
use crate::billing::{Subscription, SubscriptionQuery};
use crate::kernel::{Context, CustomerId, Result};
use crate::port::UnitOfWork;

/// The most subscriptions of a customer that are looked at.
const MAX_SUBSCRIPTIONS: u32 = 100;

/// Tells the customer of the book that the default card expires. Does nothing if that was done, or no subscription needs
/// the card.
pub(super) async fn tell(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    mut book: CustomerBook,
) -> Result<()> {
    let customer = &mut book.customer;
    if customer.card_notice_at != Some(book.now) {
        return Ok(());
    }
    customer.card_notice_at = None;
    if let Some(card) = &customer.default_card
        && has_subscription(uow, &customer.id).await?
    {
        news::tell(cx, uow, billing, customer, News::CardExpires(card)).await?;
    }
    book.store(uow).await?;
    Ok(())
}

/// Plans the notice again for a customer without a subscription, whose card was not needed when the notice was due. Call it
/// before a new subscription is stored.
pub(super) async fn plan_again(uow: &mut dyn UnitOfWork, book: &mut CustomerBook) -> Result<()> {
    let customer = &mut book.customer;
    if customer.card_notice_at.is_none() && !has_subscription(uow, &customer.id).await? {
        customer.plan_card_notice(book.now);
    }
    Ok(())
}

/// Returns whether a customer has a subscription that has not ended.
async fn has_subscription(uow: &mut dyn UnitOfWork, customer: &CustomerId) -> Result<bool> {
    let all = SubscriptionQuery::Of(customer.clone());
    let all = unowned_records::<Subscription>(uow)
        .list(&all, MAX_SUBSCRIPTIONS)
        .await?;
    Ok(all.iter().any(|subscription| subscription.status.is_live()))
}
