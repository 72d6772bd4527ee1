//! Tests of the fake through its server.

mod answers;
mod contract;
mod faults;
mod limit;
mod pages;
mod resources;
mod scripts;
mod world;
mod zones;
