//! Why a key is not accepted.

use crate::kernel::text_enum;

text_enum! {
    /// Why a key is not accepted, in the words of `POST /api/core/apikey/validate`.
    pub enum ApiKeyRefusal {
        /// There is no such key.
        NotFound = "NOT_FOUND",
        /// Its time is over.
        Expired = "EXPIRED",
        /// It was revoked, disabled or rotated, or its owner may not act any more.
        Revoked = "REVOKED",
        /// It was used too often.
        RateLimited = "RATE_LIMITED",
    }
}
