//! Tests of the suite as an embedding program uses it: the parts and settings of the builder, and the effects of
//! commits.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod archives;
mod attacks;
mod doctor;
mod domains;
mod effects;
mod events;
mod folder;
mod fuzz;
mod imports;
mod raw_archives;
mod settings;
mod sites;
mod store;
mod traces;
mod worker;
mod world;
