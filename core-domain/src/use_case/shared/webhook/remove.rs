//! Removing what nobody needs any more.

use std::time::Duration;

use super::super::sweep::remove_first;
use crate::access::unowned;
use crate::kernel::{PlatformId, Result};
use crate::port::UnitOfWork;
use crate::shared::{Webhook, WebhookDelivery, WebhookDeliveryQuery, WebhookQuery};

/// How long a message is kept once it has ended.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Removes at most `limit` of the messages that ended 30 days ago or earlier, the first to end first. Returns their number; 0
/// means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_ended_deliveries(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let ended = WebhookDeliveryQuery::EndedBefore(uow.now().await?.minus(KEPT_FOR));
    remove_first::<WebhookDelivery>(uow, &ended, limit).await
}

/// Removes the webhooks of a platform that is gone, and their messages.
pub(in crate::use_case) async fn remove_of_platform(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<()> {
    let messages = WebhookDeliveryQuery::OfPlatform(platform.clone());
    unowned::<WebhookDelivery>(uow)
        .remove_all(&messages)
        .await?;
    let webhooks = WebhookQuery::Of(Some(platform.clone()));
    unowned::<Webhook>(uow).remove_all(&webhooks).await?;
    Ok(())
}
