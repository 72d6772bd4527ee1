//! The workspace stack that DNS records hang below.

use crate::access::PlatformAccess;
use crate::kernel::{Result, StackId};
use crate::port::UnitOfWork;
use crate::registry::WorkspaceStack;

/// Refuses a stack that is not one of the platform's.
pub(super) async fn ensure_stack(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
) -> Result<()> {
    let stack = scope.records::<WorkspaceStack>(uow).get(stack).await;
    stack.map(drop)
}
