//! API keys: what programs call with.

mod acting;
mod record;
mod refusal;
mod secret;
mod status;

pub use acting::{key_membership, organization_key_patterns};
pub use record::{
    ApiKey, ApiKeyOwner, ApiKeyQuery, DEFAULT_OVERLAP, DEFAULT_REQUESTS_PER_MINUTE,
    LONGEST_LIFETIME, LONGEST_OVERLAP, MAX_REQUESTS_PER_MINUTE, SHORTEST_LIFETIME,
};
pub use refusal::ApiKeyRefusal;
pub use secret::{API_KEY_PREFIX, ApiKeySecret, KeyPrefix};
pub use status::{ApiKeyEvent, ApiKeyStatus};
