//! Signing checkpoints of the installation as a whole.

use super::seal::claim_feed;
use crate::access::{unaudited, unowned};
use crate::kernel::{AuditCheckpointId, Context, Ed25519Private, Result};
use crate::port::{Mode, Store, UnitOfWork, transact_in};
use crate::shared::{
    AuditChain, AuditCheckpoint, AuditHead, AuditHeadQuery, AuditSeal, AuditSealQuery,
    CHECKPOINT_AFTER, CHECKPOINT_EVERY, InstallationStatement,
};

/// Signs a checkpoint of the installation if a thousand entries have been sealed since the last one, or if an entry has waited
/// for one for an hour. Returns whether it signed one. Others may do the same at the same time.
///
/// # Errors
/// When the store failed.
pub async fn sign_due_installation_checkpoint(
    cx: &Context,
    store: &dyn Store,
    key: &Ed25519Private,
) -> Result<bool> {
    let mut uow = store.begin(Mode::Read).await?;
    let head = unowned::<AuditHead>(uow.as_mut())
        .find(AuditChain::feed())
        .await?;
    let seems_due = match head {
        Some(head) => is_due(uow.as_mut(), &head).await?,
        None => false,
    };
    uow.rollback().await;
    if !seems_due {
        return Ok(false);
    }
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            // No chain begins and nothing is sealed while this unit has the head.
            let Some(feed) = claim_feed(uow).await? else {
                return Ok(false);
            };
            if !is_due(uow, &feed).await? {
                return Ok(false);
            }
            let now = uow.now().await?;
            let statement = InstallationStatement {
                previous: feed.hash.clone(),
                chains: unowned::<AuditHead>(uow)
                    .count(&AuditHeadQuery::Chains)
                    .await?,
                entries: u64::try_from(feed.seq).unwrap_or_default(),
            };
            let id = AuditCheckpointId::generate(now, cx.entropy.as_ref());
            let signed = AuditCheckpoint::sign_installation(key, id, feed.seq, statement, now);
            let mut next = feed.edit();
            next.hash.clone_from(&signed.hash);
            next.checked();
            unaudited::append(uow, signed).await?;
            unaudited::replace(uow, &feed, next).await?;
            Ok(true)
        })
    })
    .await
}

async fn is_due(uow: &mut dyn UnitOfWork, feed: &AuditHead) -> Result<bool> {
    let unchecked = feed.seq - feed.checkpoint_seq;
    if unchecked == 0 || unchecked >= CHECKPOINT_EVERY {
        return Ok(unchecked > 0);
    }
    let behind = AuditSealQuery::Feed(None, feed.checkpoint_seq);
    let first = unowned::<AuditSeal>(uow).first(&behind).await?;
    let since = uow.now().await?.minus(CHECKPOINT_AFTER);
    // Where the first one is gone, a checkpoint is made at once.
    Ok(first.is_none_or(|seal| seal.sealed_at <= since))
}
