//! Mixed load for a long time: `cargo bench -p core-tests --bench soak`, on SQLite, and on Postgres where
//! `CORE_TEST_POSTGRES_URL` names a server. Not part of `cargo bench` without a name.
//!
//! First the capacity is measured for a minute; then people read, write, sign in, queue jobs and deploy sites at 70 % of it
//! for 10 minutes (`-- --minutes 3`). Every minute a line says how much memory the server uses and how long each class of
//! requests took. A storm of sign-ins follows. At the end the server is killed and started again, and must show every write
//! that it had acknowledged; a lost write ends the program with an error.
//!
//! Run by a test runner (without `--bench`) it lasts a second, to see that it works.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for people; it ends by panicking when something is wrong"
)]

mod class;
mod client;
#[path = "../harness/mod.rs"]
#[expect(dead_code, reason = "the soak uses a part of it")]
mod harness;
mod ledger;
mod load;
mod plan;
mod run;
mod statistics;

use harness::arguments::Arguments;
use harness::backend::Location;
use plan::Plan;

fn main() {
    let arguments = Arguments::read();
    if arguments.asks_for_list() {
        return;
    }
    if arguments.value("--role").is_some() {
        let config = arguments.value("--config").unwrap();
        let location: Location = serde_json::from_str(config).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(harness::server::serve(location.suite()));
        return;
    }
    let plan = Plan::of(&arguments);
    for backend in &plan.backends {
        run::on(*backend, &plan);
    }
    if !harness::backend::has_postgres() {
        println!("Postgres was left out: CORE_TEST_POSTGRES_URL is not set.");
    }
}
