//! Tools for tests of the suite and of programs that embed it: mocks of the ports, a manual clock, seeded entropy, and
//! blobs, sites, DNS and infrastructure in memory. Only code for tests belongs here. Records are kept in the memory
//! store of `core-storage`, which is a complete store.

mod authenticator;
pub mod blobs_suite;
mod clock;
mod entropy;
mod hooked_infrastructure;
mod memory_blobs;
mod memory_dns;
mod memory_infrastructure;
mod memory_logs;
mod memory_site;
mod memory_spans;
mod named_id;
pub mod payments_suite;
mod seeds;

#[cfg(any(test, feature = "proptest"))]
pub mod strategies {
    //! Strategies for proptest (feature `proptest`). Every record and every validated value implements `Arbitrary`:
    //! `any::<Entity>()`. For a command use [`from_schema`].

    pub use crate::kernel::strategy::{fixed_sample, from_schema, json, json_of};
}

pub use authenticator::totp_secret_of;
pub use clock::ManualClock;
pub use entropy::SeededEntropy;
pub use hooked_infrastructure::HookedInfrastructure;
pub use memory_blobs::MemoryBlobs;
pub use memory_dns::MemoryDns;
pub use memory_infrastructure::MemoryInfrastructure;
pub use memory_site::MemorySite;
pub use memory_spans::MemorySpans;
pub use named_id::named_uuid;
pub use seeds::{cases, seeds};

pub use crate::access::RecordKey;
pub use crate::kernel::{Fields, sample_of, samples};
pub use crate::port::mocks::{
    MockBlobs, MockDnsResolver, MockInfrastructure, MockLogReader, MockMailer, MockOutlet,
    MockPasskeys, MockPasswordHasher, MockPayments, MockPlatformSuspensions, MockRateLimiter,
    MockResourceLogs, MockSiteArchives, MockStagedBlob, MockWebhookSender,
};
