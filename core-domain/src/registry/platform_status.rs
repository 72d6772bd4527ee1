//! The life of a platform.

use crate::kernel::{state_machine, text_enum};

text_enum! {
    /// Where a platform stands.
    pub enum PlatformStatus {
        /// In use.
        Active = "active",
        /// Its callers are refused.
        Suspended = "suspended",
        /// Given up by its owner.
        Cancelled = "cancelled",
        /// Gone from every list.
        Deleted = "deleted",
    }
}

state_machine! {
    /// What happens to a platform. It is created `active`. Besides, nothing moves while everything is being removed, and a
    /// restore comes too late 30 days after a deletion; a `PATCH` sets any status at any time.
    pub enum PlatformEvent moves PlatformStatus {
        /// Its callers are to be refused.
        Suspend = "suspend": [Active] => Suspended, "platform.suspended";
        /// It is to be used again.
        Restore = "restore": [Suspended, Cancelled, Deleted] => Active, "platform.restored";
        /// It is given up.
        Cancel = "cancel": [Active, Suspended] => Cancelled, "platform.cancelled";
        /// It is deleted, and can be restored for 30 days.
        Delete = "delete": [Active, Suspended, Cancelled] => Deleted, "platform.deleted";
        /// It is removed for good, with all it has.
        HardDelete = "hard_delete": [Active, Suspended, Cancelled, Deleted] => Deleted, "platform.hard_deleted";
        /// A `PATCH` sets `active`.
        SetActive = "set_active": [Suspended, Cancelled, Deleted] => Active, "platform.restored";
        /// A `PATCH` sets `suspended`.
        SetSuspended = "set_suspended": [Active, Cancelled, Deleted] => Suspended, "platform.suspended";
        /// A `PATCH` sets `deleted`.
        SetDeleted = "set_deleted": [Active, Suspended, Cancelled] => Deleted, "platform.deleted";
    }
}
