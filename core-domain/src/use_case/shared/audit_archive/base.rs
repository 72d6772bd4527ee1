//! The links after which the chains are not archived.

use crate::access::unowned_records;
use crate::kernel::{Ed25519Public, Result, Stored};
use crate::port::UnitOfWork;
use crate::shared::{
    AuditArchive, AuditArchiveQuery, AuditChain, AuditCheckpoint, AuditCheckpointQuery, AuditHead,
    AuditSeal, AuditSealQuery, GENESIS,
};

/// Maximum number of checkpoints of one link that are read.
const CHECKPOINTS: u32 = 100;

/// The last archived link of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::use_case) struct ChainBase {
    /// The number of the link; 0 if no link of the chain is archived.
    pub(in crate::use_case) seq: i64,
    /// The hash of the link; [`GENESIS`] if no link of the chain is archived.
    pub(in crate::use_case) hash: String,
}

/// Returns the archive of the newest month.
pub(in crate::use_case) async fn newest_archive(
    uow: &mut dyn UnitOfWork,
) -> Result<Option<Stored<AuditArchive>>> {
    unowned_records::<AuditArchive>(uow)
        .first(&AuditArchiveQuery::NewestFirst)
        .await
}

/// Returns the last link of a chain up to this position of the installation. It is the link before the first one after
/// the position, or else the end of the chain.
pub(in crate::use_case) async fn chain_base(
    uow: &mut dyn UnitOfWork,
    chain: &AuditChain,
    position: i64,
) -> Result<ChainBase> {
    let behind = AuditSealQuery::OfChainBehind(chain.clone(), position);
    let next = unowned_records::<AuditSeal>(uow).first(&behind).await?;
    if let Some(next) = next {
        return Ok(ChainBase {
            seq: next.seq - 1,
            hash: next.previous_hash.clone(),
        });
    }
    let head = unowned_records::<AuditHead>(uow).find(chain).await?;
    Ok(head.map_or_else(
        || ChainBase {
            seq: 0,
            hash: GENESIS.to_owned(),
        },
        |head| ChainBase {
            seq: head.seq,
            hash: head.hash.clone(),
        },
    ))
}

impl ChainBase {
    /// Returns the checkpoints that state that this is the last archived link, in the order of their ids.
    pub(in crate::use_case) async fn checkpoints(
        &self,
        uow: &mut dyn UnitOfWork,
        chain: &AuditChain,
        key: &Ed25519Public,
    ) -> Result<Vec<AuditCheckpoint>> {
        let behind = AuditCheckpointQuery::OfChain(chain.clone(), self.seq - 1);
        let found = unowned_records::<AuditCheckpoint>(uow)
            .list(&behind, CHECKPOINTS)
            .await?;
        let found = found.into_iter().map(Stored::into_inner);
        let states = |found: &AuditCheckpoint| {
            (found.seq, &found.hash) == (self.seq, &self.hash)
                && found.archived_until.is_some()
                && found.is_signed_by(key)
        };
        Ok(found.filter(states).collect())
    }
}
