//! For tests of whoever embeds the suite: mocks of every outward port, a clock and entropy that are set, and stores of bytes
//! in memory. Records are kept by the memory store of `core-storage`, which is a real one.

mod authenticator;
mod clock;
mod entropy;
mod memory_blobs;
mod memory_dns;
mod memory_infrastructure;
mod memory_site;
mod seeds;

#[cfg(any(test, feature = "proptest"))]
pub mod strategies {
    //! Strategies of proptest (feature `proptest`). Every record and every value implements `Arbitrary`: `any::<Entity>()`;
    //! a command is made by [`from_schema`].

    pub use crate::kernel::strategy::{from_schema, json, json_of, some};
}

pub use authenticator::totp_secret_of;
pub use clock::ManualClock;
pub use entropy::SeededEntropy;
pub use memory_blobs::MemoryBlobs;
pub use memory_dns::MemoryDns;
pub use memory_infrastructure::MemoryInfrastructure;
pub use memory_site::MemorySite;
pub use seeds::{cases, seeds};

pub use crate::access::RecordKey;
pub use crate::kernel::{Fields, sample_of, samples};
pub use crate::port::mocks::{
    MockBlobs, MockDnsResolver, MockInfrastructure, MockMailer, MockOutlet, MockPasskeys,
    MockPasswordHasher, MockPlatformSuspensions, MockRateLimiter, MockSiteArchives, MockStagedBlob,
    MockWebhookSender,
};
