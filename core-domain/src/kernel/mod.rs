//! What every service of the domain shares: ids, validated text, time, entropy, errors, pages, callers.

mod caller;
mod canonical;
mod context;
mod entropy;
mod error;
mod hex;
mod id;
mod page;
mod permission;
pub(crate) mod store_error;
mod text;
mod text_value;
mod time;

pub use caller::{Caller, Membership, Role};
pub use canonical::canonical_json;
pub use context::{Context, RequestInfo};
pub use entropy::{Entropy, SeededEntropy, secret_token};
pub use error::{Code, Error, Issue, Result};
pub use hex::hex;
pub use id::*;
pub use page::{Cursor, Page, PageRequest};
pub use permission::{Permission, PermissionSet};
pub use text::{Email, Environment, Name, Reason, Slug, TextError};
pub use text_value::TextValue;
pub(crate) use text_value::text_enum;
pub use time::{Clock, ManualClock, Timestamp, UnixSeconds};
