//! How a resource moves.

use super::{Resource, ResourceEvent, ResourceStatus};
use crate::kernel::{IllegalMove, Machine, Timestamp};

impl Resource {
    /// The resource after an event.
    ///
    /// # Errors
    /// [`IllegalMove`] when it cannot happen to it.
    pub fn after(mut self, event: ResourceEvent, now: Timestamp) -> Result<Self, IllegalMove> {
        self.status = event.next(self.status)?;
        if self.status == ResourceStatus::Deleted {
            self.deleted_at = Some(now);
        }
        Ok(self)
    }

    /// The resource once it was found to be there, whatever was known of it before.
    ///
    /// # Errors
    /// [`IllegalMove`] for a deleted one.
    pub fn observed(self, now: Timestamp) -> Result<Self, IllegalMove> {
        match self.status {
            ResourceStatus::Active => Ok(self),
            ResourceStatus::Provisioning => self.after(ResourceEvent::Activate, now),
            _ => {
                let provisioning = self.after(ResourceEvent::Provision, now)?;
                provisioning.after(ResourceEvent::Activate, now)
            }
        }
    }

    /// The resource once work on it begins, or begins again.
    ///
    /// # Errors
    /// [`IllegalMove`] for one that is there, and for a deleted one.
    pub fn begun(self, now: Timestamp) -> Result<Self, IllegalMove> {
        match self.status {
            ResourceStatus::Provisioning => Ok(self),
            _ => self.after(ResourceEvent::Provision, now),
        }
    }

    /// The resource once it is known that it was not created.
    ///
    /// # Errors
    /// [`IllegalMove`] for one that is there, and for a deleted one.
    pub fn not_made(self, now: Timestamp) -> Result<Self, IllegalMove> {
        match self.status {
            ResourceStatus::Failed => Ok(self),
            _ => self.begun(now)?.after(ResourceEvent::Fail, now),
        }
    }
}
