//! The ports: what the domain asks of the world outside. Adapters implement them; use cases know nothing else.

mod announce;
mod api_key_context;
mod archives;
mod blobs;
mod cause;
mod dns_resolver;
mod infrastructure;
mod job_hints;
mod mailbox;
mod mailer;
mod mime;
mod outlet;
mod passkeys;
mod password;
mod platform_suspensions;
mod rate_limiter;
mod session_context;
mod store;
mod webhook_sender;

#[cfg(any(test, feature = "testing"))]
pub(crate) mod mocks {
    //! The mocks that are made beside the traits.

    pub use super::archives::MockSiteArchives;
    pub use super::blobs::{MockBlobs, MockStagedBlob};
    pub use super::dns_resolver::MockDnsResolver;
    pub use super::infrastructure::MockInfrastructure;
    pub use super::mailer::MockMailer;
    pub use super::outlet::MockOutlet;
    pub use super::passkeys::MockPasskeys;
    pub use super::password::MockPasswordHasher;
    pub use super::platform_suspensions::MockPlatformSuspensions;
    pub use super::rate_limiter::MockRateLimiter;
    pub use super::webhook_sender::MockWebhookSender;
}

pub use announce::{AnnouncingStore, CommitListener, CommitRest};
pub use api_key_context::{ApiKeyContext, ApiKeyContexts, ApiKeySecretKey};
pub use archives::{ArchiveError, FileVisitor, Site, SiteArchives};
pub use blobs::{BlobError, BlobReader, Blobs, StagedBlob, is_blob_key};
pub use cause::Cause;
pub use dns_resolver::{DnsError, DnsResolver};
pub use infrastructure::{
    CreateResource, HostnameState, Infrastructure, OwnedObject, OwnedObjects, ProviderError,
    Provisioned, ResourceRef, Route, RouteHostname, ServeHostname, ServedHostname, SetSecrets,
    SiteDeployment, SiteState, SiteStorage, SiteUpload,
};
pub use job_hints::JobHints;
pub use mailbox::{Mailbox, MailboxError};
pub use mailer::{Mail, MailError, Mailer};
pub use mime::mime_message;
pub use outlet::{Outlet, OutletError};
pub use passkeys::{
    NewPasskey, PasskeyCeremony, PasskeyError, PasskeyUser, Passkeys, ShownPasskey, UsedPasskey,
};
pub use password::{HashForm, PasswordError, PasswordHasher};
pub use platform_suspensions::{PlatformSuspensions, SuspensionUnknown};
pub use rate_limiter::{RateLimiter, RateLimiterError};
pub use session_context::{SessionContext, SessionContexts, SessionKey};
pub use store::{
    Direction, Env, Mode, Persisted, Repositories, Repository, Staged, Store, UnitOfWork, Within,
    Work, transact, transact_if, transact_in,
};
pub use webhook_sender::{
    LONGEST_SENDING, WebhookAnswer, WebhookRequest, WebhookSendError, WebhookSender,
};
