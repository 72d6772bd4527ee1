//! The ports: traits through which the domain uses the outside world, with the types of their requests and errors.
//! Adapters implement them; use cases know only the traits. Implementations and rules of a service do not belong here.

mod announce;
mod archives;
mod blobs;
mod caller_contexts;
mod cause;
mod dns_resolver;
mod infrastructure;
mod job_hints;
mod logs;
mod mail;
mod notices;
mod outlet;
mod passkeys;
mod password;
mod payments;
mod rate_limiter;
mod span_sink;
mod statement_times;
mod store;
mod tax_calculator;
mod traffic_meter;
mod webhook_sender;

#[cfg(any(test, feature = "testing"))]
pub(crate) mod mocks {
    //! The mocks that `mockall` generates next to the traits.

    pub use super::archives::MockSiteArchives;
    pub use super::blobs::{MockBlobs, MockStagedBlob};
    pub use super::caller_contexts::MockPlatformSuspensions;
    pub use super::dns_resolver::MockDnsResolver;
    pub use super::infrastructure::MockInfrastructure;
    pub use super::logs::{MockLogReader, MockResourceLogs};
    pub use super::mail::MockMailer;
    pub use super::outlet::MockOutlet;
    pub use super::passkeys::MockPasskeys;
    pub use super::password::MockPasswordHasher;
    pub use super::payments::MockPayments;
    pub use super::rate_limiter::MockRateLimiter;
    pub use super::webhook_sender::MockWebhookSender;
}

pub use announce::{AnnouncingStore, CommitListener, DetachedCommit};
pub use archives::{ArchiveError, FileVisitor, PartialSite, Site, SiteArchives};
pub use blobs::{BlobError, BlobReader, Blobs, StagedBlob, is_blob_key};
pub use caller_contexts::{
    ApiKeyContext, ApiKeyContexts, ApiKeySecretKey, PlatformSuspensions, SessionContext,
    SessionContexts, SessionKey, SuspensionUnknown,
};
pub use cause::Cause;
pub use dns_resolver::{DnsError, DnsResolver};
pub use infrastructure::{
    HostnameState, Infrastructure, ObjectRequest, OwnedObject, OwnedObjects, ProviderError,
    ProviderObject, ResourceRef, Route, RouteHostname, ServeHostname, ServedHostname, SetSecrets,
    SiteDeployment, SiteRedeploy, SiteState, SiteStorage, SiteUpload,
};
pub use job_hints::JobHints;
pub use logs::{LogBatch, LogError, LogListener, LogQuery, LogReader, LogStart, ResourceLogs};
pub use mail::{Mail, MailError, Mailbox, MailboxError, Mailer};
pub use notices::{NoticeBuffer, Notices};
pub use outlet::{Outlet, OutletError};
pub use passkeys::{
    NewPasskey, PasskeyCeremony, PasskeyError, PasskeyUser, Passkeys, PresentedPasskey, UsedPasskey,
};
pub use password::{HashForm, PasswordError, PasswordHasher};
pub use payments::{
    Close, CollectOutcome, Decline, InvoiceReference, LostDispute, OpKey, PayingCustomer, Payments,
    PaymentsError, ProviderEvent, ProviderInvoice, ProviderMethod, ProviderRefund,
    ProviderSetupIntent, PushedInvoice, PushedLine, WebhookError,
};
pub use rate_limiter::{RateLimiter, RateLimiterError};
pub use span_sink::{AttributeValue, Span, SpanCounts, SpanKind, SpanSink};
pub use statement_times::{SlowestStatements, StatementTime};
pub use store::{
    CellState, Direction, Env, FieldValue, HostStatements, Mode, Persisted, PoolState, RecordGroup,
    Repositories, Repository, Staged, Store, UnitOfWork, Within, Work, transact, transact_if,
    transact_in,
};
pub use tax_calculator::TaxCalculator;
pub use traffic_meter::TrafficMeter;
pub use webhook_sender::{
    MAX_SEND_DURATION, WebhookRequest, WebhookResponse, WebhookSendError, WebhookSender,
};
