//! Scopes on the whole installation.

use super::platform::{PlatformWriter, writer_for_job};
use super::records::Records;
use super::records::{Covers, CoversEverything, Sealed};
use super::requirement::Requirement;
use crate::kernel::{Context, PlatformId, Result, Unowned};
use crate::port::{Persisted, UnitOfWork, Within};

/// The whole installation, for somebody who operates it.
#[derive(Clone, Copy, Debug)]
pub struct OperatorScope(());

/// The whole installation, for the suite itself: jobs and what time does. Made in this crate alone.
#[derive(Clone, Copy, Debug)]
pub struct SystemScope(());

/// Lets operators in.
///
/// # Errors
/// `UNAUTHORIZED`, `FORBIDDEN`.
pub fn authorize_operator(cx: &Context) -> Result<OperatorScope> {
    Requirement::Operator.check(&cx.caller)?;
    Ok(OperatorScope(()))
}

impl OperatorScope {
    /// Everybody's records of one kind.
    pub fn records<R: Persisted>(self, uow: &mut dyn UnitOfWork) -> Records<'_, R> {
        Records::within(uow, Within::Installation)
    }
}

impl SystemScope {
    pub(crate) const fn new() -> Self {
        Self(())
    }

    /// Everybody's records of one kind.
    pub(crate) fn records<R: Persisted>(self, uow: &mut dyn UnitOfWork) -> Records<'_, R> {
        Records::within(uow, Within::Installation)
    }

    /// A platform, for what a job writes; `None` when it is gone.
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
