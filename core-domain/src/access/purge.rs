//! Removing what belongs to a platform.

use super::key::RecordKey;
use super::platform::PlatformWriter;
use crate::kernel::{Owner, Record, Result, for_each_record};
use crate::port::UnitOfWork;

macro_rules! remove_records {
    ($($accessor:ident: $record:ty $(, $id:ident $doc:literal)?;)+) => {
        /// Removes every record that belongs to the platform, of every kind there is. The audit and the history of jobs
        /// belong to the installation and stay.
        ///
        /// # Errors
        /// When the store failed.
        pub(crate) async fn remove_records(access: &PlatformWriter, uow: &mut dyn UnitOfWork) -> Result<()> {
            $(
                if <<$record as Record>::Owner as Owner>::IS_PLATFORM {
                    let repositories = uow.repositories(RecordKey::new());
                    repositories.$accessor().remove_of_platform(access.id()).await?;
                }
            )+
            Ok(())
        }
    };
}
for_each_record!(remove_records);
