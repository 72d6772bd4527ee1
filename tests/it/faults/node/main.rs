//! A process of a host program with its own job kinds, which the fault tests start and kill. Its only argument is a
//! JSON object with its orders. It queues jobs, optionally works until they have ended, and prints their statuses as a
//! line of JSON.

mod kinds;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Clock, Timestamp};
use core_suite::jobs::{JobId, JobKind};
use core_suite::{Suite, SuiteBuilder, SystemClock};
use serde::Deserialize;

use crate::kinds::{Name, Poison, Steady};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The orders of the process.
#[derive(Debug, Deserialize)]
struct Orders {
    /// The URL of a Postgres database, or the path of a SQLite file.
    database: String,
    /// The suite's data folder. The jobs write their files to its subfolder `objects`.
    data: PathBuf,
    /// The number of seconds by which the store's clock is ahead of the machine's clock.
    ahead: Option<u64>,
    slots: usize,
    /// The names of jobs to queue, unless they exist.
    steady: Vec<String>,
    poison: Vec<String>,
    /// True to work until these jobs have ended.
    wait: bool,
}

/// The machine's clock, moved forward.
#[derive(Debug)]
struct Ahead(Duration);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(self.0)
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let orders = std::env::args()
        .nth(1)
        .ok_or("the argument with the orders is missing")?;
    let orders: Orders = serde_json::from_str(&orders)?;
    let suite = builder(&orders).build().await?;
    let mut jobs = BTreeMap::new();
    queue::<Steady>(&suite, &orders.steady, &mut jobs).await?;
    queue::<Poison>(&suite, &orders.poison, &mut jobs).await?;
    let mut statuses = BTreeMap::new();
    for (name, job) in jobs {
        let view = match orders.wait {
            true => suite.jobs().wait_until_ended(&job).await?,
            false => suite.jobs().get(&job).await?,
        };
        statuses.insert(name, (job, view.job.status, view.job.failure_kind));
    }
    suite.shutdown().await;
    let line = serde_json::to_string(&statuses)?;
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

fn builder(orders: &Orders) -> SuiteBuilder {
    let objects = orders.data.join("objects");
    let mut builder = Suite::builder()
        .data_folder(&orders.data)
        .service_key("a-key-of-these-tests")
        .job_kind(Steady { objects })
        .job_kind(Poison)
        .worker_slots(orders.slots);
    if let Some(ahead) = orders.ahead {
        builder = builder.clock(Arc::new(Ahead(Duration::from_secs(ahead))));
    }
    match orders.database.starts_with("postgres:") {
        true => builder.postgres(&orders.database),
        false => builder.sqlite(&orders.database),
    }
}

async fn queue<K: JobKind<Input = Name>>(
    suite: &Suite,
    names: &[String],
    jobs: &mut BTreeMap<String, JobId>,
) -> Result<(), Failure> {
    for name in names {
        let id = suite.jobs().enqueue::<K>(&Name(name.clone())).await?;
        jobs.insert(name.clone(), id);
    }
    Ok(())
}
