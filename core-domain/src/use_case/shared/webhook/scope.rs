//! Whose webhooks a caller reaches.

use crate::access::{Covers, OperatorScope, PlatformScope};
use crate::kernel::{PlatformId, Unowned, grant};

/// A scope that reads webhooks: those of a platform, or the installation's.
pub trait ReadsWebhooks: Send + Sync {
    /// The platform; `None` for the installation.
    fn platform(&self) -> Option<&PlatformId>;
}

/// A scope that changes them.
pub trait WritesWebhooks: ReadsWebhooks + Covers<Unowned> {}

impl ReadsWebhooks for PlatformScope<grant::WebhookRead> {
    fn platform(&self) -> Option<&PlatformId> {
        Some(self.id())
    }
}

impl ReadsWebhooks for PlatformScope<grant::WebhookWrite> {
    fn platform(&self) -> Option<&PlatformId> {
        Some(self.id())
    }
}

impl ReadsWebhooks for OperatorScope {
    fn platform(&self) -> Option<&PlatformId> {
        None
    }
}

impl WritesWebhooks for PlatformScope<grant::WebhookWrite> {}
impl WritesWebhooks for OperatorScope {}
