//! Tests of the job contract under faults of processes, networks and databases. Each test ends with a check of the
//! invariants (`jobs::audit`).
//!
//! | | The fault | Without processes | With real processes, on SQLite and Postgres |
//! |---|---|---|---|
//! | F1 | `kill -9` at each commit point | `jobs::crash`, `registry_jobs::crash`: between any two units | `kills`, `renewals`, `crate::crash` |
//! | F2 | a worker is frozen past its lease | `jobs::engine` | `frozen`, on Postgres |
//! | F3 | the provider fails or answers twice | `provider` on every store, `registry_jobs::crash`, `jobs::{engine, simulation}` | - |
//! | F4 | a reply is lost after its commit | `lost_replies` on every store, `jobs::batches` | `database` cuts connections |
//! | F5 | one request arrives 2 to 50 times | `kernel::idempotency` of `core-http` | `duplicates` |
//! | F6 | clocks of nodes are wrong and jump | - | `clocks`, on Postgres |
//! | F7 | Postgres restarts; no connection; no hints | - | `database` |
//! | F8 | SQLite is killed, full, opened twice | - | `files`, on SQLite |
//! | F9 | operators race the last report | `races` on every store | - |
//! | F10 | a job kills its process | `jobs::engine` | `poison` |
//! | F11 | 10,000 jobs of one platform | `fairness` on every store, `jobs::batches` | - |
//! | F12 | a transaction stays open | `long_transaction`, on Postgres | - |
//! | F13 | a process does not know a kind | `jobs::batches` | `upgrade` |
//! The tests are scaled down to a reasonable duration. F2 freezes for a lease of 2 s instead of a minute. F9 runs
//! 10,000 rounds in memory and 300 on SQL. F12 runs 1,000 jobs instead of 100,000 and measures nothing. F8 fills the
//! disk by a limit on the size of files (`RLIMIT_FSIZE`, which causes `EFBIG` where a full disk causes `ENOSPC`). That
//! limit needs no privilege, and can be lifted while the server runs.

mod clocks;
mod database;
mod duplicates;
mod fairness;
mod files;
mod frozen;
mod kills;
mod long_transaction;
mod lost_replies;
mod poison;
mod provider;
mod races;
mod renewals;
mod site;
mod stops;
mod upgrade;
