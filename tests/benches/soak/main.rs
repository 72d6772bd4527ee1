//! A soak test with mixed load: `cargo bench -p core-tests --bench soak`, on SQLite, and on Postgres if
//! `CORE_TEST_POSTGRES_URL` names a server. `cargo bench` without a name does not run it.
//!
//! First the capacity is measured for a minute. Then users read, write, sign in, queue jobs and deploy sites at 70 % of
//! the capacity for 10 minutes (`-- --minutes 3`). Every minute a line shows the server's memory and the response times
//! of each class of requests. A storm of sign-ins follows. At the end the server is killed and restarted, and must show
//! every write that it had acknowledged. A lost write ends the program with an error.
//!
//! A test runner (without `--bench`) runs it for one second, as a test.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a command-line program that panics on errors"
)]

mod class;
mod client;
#[path = "../harness/mod.rs"]
#[expect(dead_code, reason = "the soak test uses only a part of it")]
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
        println!("Postgres was skipped: CORE_TEST_POSTGRES_URL is not set.");
    }
}
