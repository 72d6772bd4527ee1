//! What a new deployment could be a repetition of, or get in the way of.

use std::time::Duration;

use crate::access::PlatformAccess;
use crate::kernel::{Result, Stored};
use crate::port::UnitOfWork;
use crate::registry::{Branch, Deployment, DeploymentQuery};

/// How long a deployment may stay where it is: the provider has as long to serve one, and one that no job works on is not
/// waited for any longer.
pub(in crate::use_case) const STUCK_AFTER: Duration = Duration::from_secs(15 * 60);

/// What is known of a deployment that is about to be asked for.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::use_case) struct EarlierDeployments {
    /// The one with the same key.
    pub(in crate::use_case) with_key: Option<Stored<Deployment>>,
    /// One of the same branch that has not ended, and that a job works on or somebody moved within [`STUCK_AFTER`].
    pub(in crate::use_case) in_flight: Option<Stored<Deployment>>,
    /// The newest of the same branch with the same content, entered a short while ago.
    pub(in crate::use_case) same_content: Option<Stored<Deployment>>,
}

/// Looks for deployments that a new one could be a repetition of, or get in the way of.
pub(in crate::use_case) async fn earlier(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    branch: &Branch,
    key: Option<DeploymentQuery>,
    content_hash: &str,
    short_while: Duration,
) -> Result<EarlierDeployments> {
    let now = uow.now().await?;
    let with_key = match key {
        Some(key) => scope.records::<Deployment>(uow).first(&key).await?,
        None => None,
    };
    let same_content = DeploymentQuery::WithContent {
        branch: branch.clone(),
        content_hash: content_hash.to_owned(),
    };
    let same_content = scope
        .records::<Deployment>(uow)
        .first(&same_content)
        .await?;
    let in_flight = DeploymentQuery::InFlightOf {
        branch: branch.clone(),
        moved_since: now.minus(STUCK_AFTER),
    };
    Ok(EarlierDeployments {
        with_key,
        in_flight: scope.records::<Deployment>(uow).first(&in_flight).await?,
        same_content: same_content.filter(|d| d.created_at >= now.minus(short_while)),
    })
}
