//! The measurements to make, and their sizes.

use std::time::Duration;

use crate::harness::arguments::Arguments;
use crate::harness::backend::{Backend, has_postgres};
use crate::harness::load::Times;

/// The measurements to make, and their sizes.
#[derive(Debug)]
pub(crate) struct Plan {
    /// True for a benchmark, false for a test run.
    pub(crate) is_bench: bool,
    /// The stores of every part but the requests.
    pub(crate) backends: Vec<Backend>,
    /// The stores of the requests. They include sqlx, which the other parts measure only if it is named.
    pub(crate) request_backends: Vec<Backend>,
    only: Option<Vec<String>>,
    /// The number of rounds. Other processes on the machine may disturb some of them.
    pub(crate) rounds: usize,
    pub(crate) times: Times,
    /// The number of platforms for the page of 20 and the lookups.
    pub(crate) platforms: u32,
    /// The numbers of platforms at which the growth is measured.
    pub(crate) rows: Vec<u32>,
    /// The numbers of lanes from which jobs are drained.
    pub(crate) lanes: Vec<u32>,
    /// The minimum number of jobs in all lanes.
    pub(crate) jobs: u32,
    /// Maximum duration of a drain.
    pub(crate) drain_limit: Duration,
    /// How long jobs are queued.
    pub(crate) queueing: Duration,
    /// The number of subscriptions to renew.
    pub(crate) subscriptions: u32,
    /// The number of subscriptions to renew at Stripe.
    pub(crate) stripe_renewals: u32,
    /// The number of subscriptions of which a tick finds the due ones.
    pub(crate) ticked: u32,
    /// The number of jobs whose start is timed, in one process and between two.
    pub(crate) starts: u32,
    /// The number of audit entries and resources of one platform, and the page of their lists that is measured.
    pub(crate) audit: u32,
    pub(crate) resources: u32,
    pub(crate) page: u32,
    /// The number of idle connections whose memory is measured. With the files of the process it is below 1,024.
    pub(crate) connections: u32,
}

impl Plan {
    pub(crate) fn of(arguments: &Arguments) -> Self {
        let list = |flag| {
            let text = arguments.value(flag)?;
            Some(text.split(',').map(str::to_owned).collect::<Vec<_>>())
        };
        let mut plan = if arguments.is_bench() {
            Self::full()
        } else {
            Self::tiny()
        };
        plan.only = list("--only");
        if let Some(stores) = list("--stores") {
            let is_named = |backend: &Backend| {
                let mut stores = stores.iter();
                stores.any(|store| store.eq_ignore_ascii_case(backend.name()))
            };
            plan.request_backends.retain(is_named);
            plan.backends = plan.request_backends.clone();
        }
        plan
    }

    fn full() -> Self {
        Self {
            is_bench: true,
            backends: backends(),
            request_backends: request_backends(),
            only: None,
            rounds: 5,
            times: Times {
                warm_up: Duration::from_millis(300),
                measured: Duration::from_millis(1_000),
                answers: 64,
            },
            platforms: 10_000,
            rows: vec![100, 1_000, 10_000, 100_000, 1_000_000],
            lanes: vec![100, 1_000, 3_000, 10_000, 100_000],
            jobs: 3_000,
            drain_limit: Duration::from_secs(10),
            queueing: Duration::from_secs(5),
            subscriptions: 2_000,
            stripe_renewals: 500,
            ticked: 1_000_000,
            starts: 60,
            audit: 1_000_000,
            resources: 100_000,
            page: 500,
            connections: 800,
        }
    }

    fn tiny() -> Self {
        Self {
            is_bench: false,
            backends: backends(),
            request_backends: request_backends(),
            only: None,
            rounds: 1,
            times: Times {
                warm_up: Duration::ZERO,
                measured: Duration::from_millis(20),
                answers: 1,
            },
            platforms: 30,
            rows: vec![30],
            lanes: vec![3],
            jobs: 6,
            drain_limit: Duration::from_secs(10),
            queueing: Duration::from_millis(20),
            subscriptions: 3,
            stripe_renewals: 2,
            ticked: 20,
            starts: 2,
            audit: 400,
            resources: 110,
            page: 2,
            connections: 3,
        }
    }

    /// The number of requests for each page.
    pub(crate) const fn answers(&self) -> u32 {
        if self.is_bench { 101 } else { 1 }
    }

    pub(crate) fn includes(&self, part: &str) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|parts| parts.iter().any(|named| named == part))
    }
}

fn backends() -> Vec<Backend> {
    let mut backends = vec![Backend::Memory, Backend::Sqlite];
    if has_postgres() {
        backends.push(Backend::Postgres);
    }
    backends
}

fn request_backends() -> Vec<Backend> {
    let mut backends = backends();
    if has_postgres() {
        backends.push(Backend::Sqlx);
    }
    backends
}
