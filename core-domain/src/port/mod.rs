//! The ports: what the domain asks of the world outside. Adapters implement them; use cases know nothing else.

mod archives;
mod blobs;
mod infrastructure;
mod outlet;
mod password;
mod store;
mod wake;

pub use archives::SiteArchives;
pub use blobs::{BlobError, Blobs, MemoryBlobs, is_blob_key};
pub use infrastructure::{
    CreateResource, Infrastructure, ProviderError, Provisioned, ResourceRef, SiteDeployment,
    SiteFile, SiteState, SiteUpload,
};
pub use outlet::{Outlet, OutletError};
pub use password::{PasswordError, PasswordHasher};
pub use store::{
    Direction, Mode, Record, Repository, Scope, Store, Stored, UnitOfWork, Work, for_each_record,
    transact,
};
pub use wake::{NoWake, Wake};

pub use crate::kernel::store_error::StoreError;
