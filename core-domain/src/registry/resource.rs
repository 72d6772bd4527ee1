//! Infrastructure resources (interface: "Infrastructure resource").

use crate::kernel::text_enum;

text_enum! {
    /// What kind of object a resource is.
    pub enum ResourceType {
        /// A script that answers requests.
        Worker = "worker",
        /// A static site.
        Pages = "pages",
        /// A SQL database.
        D1 = "d1",
        /// A bucket of objects.
        R2 = "r2",
        /// A key-value namespace.
        Kv = "kv",
        /// A message queue.
        Queue = "queue",
    }
}
