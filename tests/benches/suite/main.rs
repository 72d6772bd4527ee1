//! Benchmarks of the suite, with bare hyper as the reference in the same run: `cargo bench -p core-tests`.
//!
//! Requests are measured as processor time of the serving process, which runs alone on a core. Jobs are measured as the
//! number that the worker of `core-suite` drains per second. The stores are memory, SQLite, and Postgres if
//! `CORE_TEST_POSTGRES_URL` names a server. Requests are also measured on Postgres over a pool of sqlx.
//!
//! `-- --write` writes the tables to `tests/benches/RESULTS.md`. `-- --only requests,jobs` measures only these parts
//! (`requests`, `server`, `jobs`, `queueing`, `start`, `growth`, `pages`, `billing`, `ticks`, `stripe`). `-- --stores memory,SQLite` measures only
//! these stores; `sqlx` is one of them.
//!
//! A test runner (without `--bench`) runs every part once with tiny sizes, as a test.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a command-line program that panics on errors"
)]

mod bare;
mod billing;
mod core_server;
mod drain;
mod fill;
mod growth;
#[path = "../harness/mod.rs"]
mod harness;
mod job_start;
mod jobs;
mod kinds;
mod machine;
mod memory;
mod pages;
mod plan;
mod queueing;
mod report;
mod requests;
mod rounds;
mod stripe_renewals;
mod ticks;

use harness::arguments::Arguments;
use harness::backend::Location;
use harness::cpu::Cores;
use plan::Plan;
use report::Report;
use serde::Deserialize;

/// The same allocator as that of `core-server`. Bare hyper uses it too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures one part of the plan and reports it.
type Part = fn(&Plan, &mut Report);

fn main() {
    let arguments = Arguments::read();
    if arguments.asks_for_list() {
        return;
    }
    if let Some(role) = arguments.value("--role") {
        play(role, arguments.value("--config").unwrap());
        return;
    }
    let plan = Plan::of(&arguments);
    if arguments.is_bench() {
        Cores::bind_this_process();
    }
    let mut report = Report::new(&plan);
    let parts: [(&str, Part); 11] = [
        ("requests", requests::measure),
        ("server", core_server::measure),
        ("memory", memory::measure),
        ("jobs", jobs::measure),
        ("queueing", queueing::measure),
        ("start", job_start::measure),
        ("growth", growth::measure),
        ("pages", pages::measure),
        ("billing", billing::measure),
        ("ticks", ticks::measure),
        ("stripe", stripe_renewals::measure),
    ];
    for (part, measure) in parts {
        if plan.includes(part) {
            measure(&plan, &mut report);
        }
    }
    report.end(arguments.has("--write"));
}

/// Runs this program in the role of a child process.
fn play(role: &str, config: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    match role {
        "bare" => runtime.block_on(bare::serve()),
        "server" => runtime.block_on(requests::serve(read(config))),
        "fill" => runtime.block_on(fill::run(read(config))),
        "pages" => runtime.block_on(pages::run(read(config))),
        "billing" => runtime.block_on(billing::run(read(config))),
        "stripe" => runtime.block_on(stripe_renewals::run(read(config))),
        "ticks" => runtime.block_on(ticks::run(read(config))),
        "queueing" => runtime.block_on(queueing::run(read(config))),
        "drain" => runtime.block_on(drain::run(read(config))),
        "start" => runtime.block_on(job_start::in_one_process(read(config))),
        "node" => runtime.block_on(job_start::as_worker(read(config))),
        "enqueue" => runtime.block_on(job_start::as_enqueuer(read(config))),
        _ => panic!("the role {role} does not exist"),
    }
}

fn read<'a, T: Deserialize<'a>>(config: &'a str) -> T {
    serde_json::from_str(config).unwrap()
}

/// The store that a child process uses, and the number of jobs.
#[derive(Debug, Deserialize)]
struct CountAt {
    location: Location,
    count: u32,
}
