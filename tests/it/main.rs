//! Tests of the complete suite, across its crates.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod accounting;
mod announcements;
mod architecture;
mod archived_audit;
mod backups;
#[cfg(unix)]
mod buckets;
mod cell_outage;
mod cells;
mod cloudflare_sites;
mod crash;
#[cfg(unix)]
mod customer_year;
#[cfg(unix)]
mod data_folder;
mod deploys;
mod device_login;
mod doctor;
mod enlist;
#[cfg(target_os = "linux")]
mod faults;
mod hostnames;
mod imports;
mod jobs;
mod mails;
mod metrics;
mod nodes;
#[cfg(unix)]
mod notices;
mod plan_versions;
mod registry_jobs;
mod renewals;
mod replicas;
mod secrets;
#[cfg(unix)]
mod service_manager;
mod slice;
#[cfg(unix)]
mod splits;
#[cfg(unix)]
mod stopping;
#[cfg(unix)]
mod stripe;
mod surface;
mod sweeps;
#[cfg(unix)]
mod time_zones;
mod uploads;
#[cfg(unix)]
mod worker_host;
mod workers;
mod world;
