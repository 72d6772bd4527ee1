//! The suite as its embedder sees it: what is built of the parts that were set, and what a commit sets off.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod archives;
mod domains;
mod effects;
mod events;
mod folder;
mod imports;
mod settings;
mod sites;
mod store;
mod worker;
mod world;
