//! Scopes on the whole installation.

use super::platform::{PlatformWriter, writer_for_job};
use super::records::Records;
use super::records::{Covers, CoversEverything, Sealed};
use super::requirement::Requirement;
use crate::kernel::{Context, PlatformId, Result, Unowned};
use crate::port::{Persisted, UnitOfWork, Within};

/// The whole installation, for an operator.
#[derive(Clone, Copy, Debug)]
pub struct OperatorScope(());

/// The whole installation, for jobs and background work of the suite. Only this crate creates one.
#[derive(Clone, Copy, Debug)]
pub struct SystemScope(());

/// Authorizes an operator.
///
/// # Errors
/// - `UNAUTHORIZED` if the caller is anonymous.
/// - `FORBIDDEN` if the caller is not an operator.
pub fn authorize_operator(cx: &Context) -> Result<OperatorScope> {
    Requirement::Operator.check(&cx.caller)?;
    Ok(OperatorScope(()))
}

impl OperatorScope {
    /// Returns access to the records of one kind, of all tenants.
    pub fn records<R: Persisted>(self, uow: &mut dyn UnitOfWork) -> Records<'_, R> {
        Records::within(uow, Within::Installation)
    }
}

impl SystemScope {
    pub(crate) const fn new() -> Self {
        Self(())
    }

    /// Returns access to the records of one kind, of all tenants.
    pub(crate) fn records<R: Persisted>(self, uow: &mut dyn UnitOfWork) -> Records<'_, R> {
        Records::within(uow, Within::Installation)
    }

    /// Returns write access to a platform for a job; `None` if the platform does not exist.
    pub(crate) async fn platform(
        self,
        uow: &mut dyn UnitOfWork,
        platform: &PlatformId,
    ) -> Result<Option<PlatformWriter>> {
        writer_for_job(uow, platform).await
    }
}

macro_rules! covers_everything {
    ($($scope:ty),+) => {$(
        impl Sealed for $scope {}
        impl CoversEverything for $scope {}

        impl Covers<Unowned> for $scope {
            fn covered_platform(&self) -> Option<&PlatformId> {
                None
            }
        }
    )+};
}
covers_everything!(OperatorScope, SystemScope);
