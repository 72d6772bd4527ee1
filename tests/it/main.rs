//! Whole-suite tests: what no single crate can say about itself.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod architecture;
mod crash;
#[cfg(unix)]
mod data_folder;
mod deploys;
mod device_login;
#[cfg(target_os = "linux")]
mod faults;
mod imports;
mod jobs;
mod mails;
mod nodes;
mod registry_jobs;
mod secrets;
mod slice;
mod surface;
mod uploads;
#[cfg(unix)]
mod workers;
mod world;
