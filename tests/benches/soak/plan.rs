//! The duration of each part.

use std::time::Duration;

use crate::harness::arguments::Arguments;
use crate::harness::backend::{Backend, has_postgres};

/// The sizes and the duration of each part.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) backends: Vec<Backend>,
    /// The number of users. Each has a platform.
    pub(crate) people: usize,
    /// How long the capacity is measured.
    pub(crate) capacity: Duration,
    /// The time between two lines of output.
    pub(crate) minute: Duration,
    /// The number of lines.
    pub(crate) minutes: u32,
    /// How long the storm lasts, and the measurement before it.
    pub(crate) storm: Duration,
    /// Maximum time for the jobs that are left at the end.
    pub(crate) max_job_time: Duration,
}

impl Plan {
    pub(crate) fn of(arguments: &Arguments) -> Self {
        let mut plan = if arguments.is_bench() {
            Self::full()
        } else {
            Self::tiny()
        };
        if let Some(minutes) = arguments.value("--minutes") {
            plan.minutes = minutes.parse().unwrap();
        }
        if let Some(stores) = arguments.value("--stores") {
            plan.backends
                .retain(|backend| stores.split(',').any(|store| store == backend.name()));
        }
        plan
    }

    fn full() -> Self {
        Self {
            backends: backends(),
            people: 20,
            capacity: Duration::from_secs(60),
            minute: Duration::from_secs(60),
            minutes: 10,
            storm: Duration::from_secs(30),
            max_job_time: Duration::from_secs(600),
        }
    }

    fn tiny() -> Self {
        let short = Duration::from_millis(100);
        Self {
            backends: backends(),
            people: 1,
            capacity: short,
            minute: short,
            minutes: 2,
            storm: short,
            max_job_time: Duration::from_secs(60),
        }
    }
}

fn backends() -> Vec<Backend> {
    if has_postgres() {
        vec![Backend::Sqlite, Backend::Postgres]
    } else {
        vec![Backend::Sqlite]
    }
}
