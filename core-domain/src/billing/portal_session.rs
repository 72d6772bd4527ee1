//! Sessions of the customer portal (contract: row 13). A link opens a session once, and the browser keeps it for a while.

use std::time::Duration;

use crate::kernel::{CustomerId, PlatformId, Timestamp, record, text_enum};

text_enum! {
    /// The kind of a session's secret.
    pub enum PortalSecret {
        /// The secret of a link, which is valid once.
        Link = "link",
        /// The secret of a browser that has followed a link.
        Browser = "browser",
    }
}

impl PortalSecret {
    /// Returns how long a secret of this kind is valid.
    #[must_use]
    pub const fn lifetime(self) -> Duration {
        match self {
            Self::Link => Duration::from_secs(5 * 60),
            Self::Browser => Duration::from_secs(30 * 60),
        }
    }
}

/// A session of the customer portal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct PortalSession {
    /// The hash of the secret.
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[a-z]{1,12}"))]
    pub id: String,
    /// The kind of the secret.
    pub secret: PortalSecret,
    /// The customer whose billing is shown.
    pub customer_id: CustomerId,
    /// The platform whose billing is shown.
    pub platform_id: PlatformId,
    /// The address that the portal leads back to.
    pub return_url: String,
    /// When the session was created.
    pub created_at: Timestamp,
    /// When the session ends.
    pub expires_at: Timestamp,
}

record! {
    PortalSession as "portal session" by id, asked PortalSessionQuery;
}

/// Queries for sessions of the portal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortalSessionQuery {
    /// The sessions that have ended by an instant.
    ExpiredAt(Timestamp),
}
