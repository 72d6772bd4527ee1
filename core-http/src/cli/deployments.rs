//! The handler that shows a deployment.

use core_domain::kernel::{DeploymentId, PlatformId, Result};
use core_domain::use_case::cli;

use super::shape::DeploymentShape;
use crate::kernel::{Cx, HowLong, Input, Output, hold};

pub(super) async fn show(
    cx: &Cx,
    input: Input<(PlatformId, DeploymentId), HowLong>,
) -> Result<Output<DeploymentShape>> {
    let (platform, id) = &input.path;
    let found = hold(
        cx.app.store.as_ref(),
        input.query.wait,
        |uow, _| Box::pin(cli::find_deployment(cx, uow, platform, id)),
        |found| found.status.is_terminal(),
    );
    let found = found.await?;
    let version = found.version();
    Ok(Output::new(found.into()).version(version))
}
