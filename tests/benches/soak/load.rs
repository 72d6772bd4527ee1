//! The load: as many requests as possible, or requests at a fixed rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::class::Class;
use crate::client::{Client, World};
use crate::ledger::Ledger;
use crate::statistics::Statistics;

/// The number of clients that send requests without a pause, to measure the capacity or for a storm of sign-ins.
const BUSY_CLIENTS: usize = 32;

/// The number of clients that share a rate. It is so high that one is free even if others wait ten seconds for a
/// sign-in.
const CLIENTS: usize = 256;

/// If a client is later than this, the server has delayed it. The time of its request then counts from when it was due.
const MAX_CLIENT_DELAY: Duration = Duration::from_millis(2);

/// The server, the acknowledged writes and the measured times.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) world: Arc<World>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) statistics: Arc<Statistics>,
    /// The number of the next request.
    next: Arc<AtomicU64>,
}

/// Load that runs until it is stopped.
#[derive(Debug)]
pub(crate) struct Running {
    over: Arc<AtomicBool>,
    clients: JoinSet<()>,
}

impl Running {
    pub(crate) async fn stop(mut self) {
        self.over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.clients.join_next().await {
            ended.unwrap();
        }
    }
}

impl Load {
    pub(crate) fn of(world: World) -> Self {
        Self {
            world: Arc::new(world),
            ledger: Arc::default(),
            statistics: Arc::default(),
            next: Arc::default(),
        }
    }

    /// Sends two requests of each class. Panics if one is refused, so that a long run does not fail later.
    pub(crate) async fn rehearse(&self) {
        let mut client = Client::open(&self.world, &self.ledger).await.unwrap();
        for class in Class::ALL.into_iter().chain(Class::ALL) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let outcome = client.perform(class, number).await;
            assert!(outcome.is_ok(), "{}: {outcome:?}", class.name());
        }
    }

    /// Sends as many requests as possible. Returns the number of responses per second.
    pub(crate) async fn capacity(&self, time: Duration) -> f64 {
        let running = self.clients(BUSY_CLIENTS, |load, client, over| {
            load.without_pause(client, over)
        });
        tokio::time::sleep(time).await;
        running.stop().await;
        let answered: usize = self.statistics.take().iter().map(|of| of.count()).sum();
        f64::from(u32::try_from(answered).unwrap()) / time.as_secs_f64()
    }

    /// Sends requests at a rate, in requests per second.
    pub(crate) fn at_rate(&self, rate: f64) -> Running {
        let (since, turn) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        self.clients(CLIENTS, move |load, client, over| {
            load.at_moments(client, over, Arc::clone(&turn), since, rate)
        })
    }

    /// Signs in without a pause.
    pub(crate) fn storm(&self) -> Running {
        self.clients(BUSY_CLIENTS, |load, client, over| {
            load.sign_in_without_pause(client, over)
        })
    }

    fn clients<F>(
        &self,
        count: usize,
        work: impl Fn(Self, Client, Arc<AtomicBool>) -> F + Send + Sync + Clone + 'static,
    ) -> Running
    where
        F: Future<Output = ()> + Send,
    {
        let over = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for _ in 0..count {
            let (load, over, work) = (self.clone(), Arc::clone(&over), work.clone());
            clients.spawn(async move {
                let client = Client::open(&load.world, &load.ledger).await.unwrap();
                work(load, client, over).await;
            });
        }
        Running { over, clients }
    }

    async fn without_pause(self, mut client: Client, over: Arc<AtomicBool>) {
        while !over.load(Ordering::Relaxed) {
            self.one(&mut client, Instant::now()).await;
        }
    }

    async fn at_moments(
        self,
        mut client: Client,
        over: Arc<AtomicBool>,
        turn: Arc<AtomicU64>,
        since: Instant,
        rate: f64,
    ) {
        while !over.load(Ordering::Relaxed) {
            let turn = turn.fetch_add(1, Ordering::Relaxed);
            let seconds = f64::from(u32::try_from(turn).unwrap()) / rate;
            let due = since + Duration::from_secs_f64(seconds);
            sleep_until(due).await;
            let now = Instant::now();
            let began = if now > due + MAX_CLIENT_DELAY {
                due
            } else {
                now
            };
            self.one(&mut client, began).await;
        }
    }

    async fn sign_in_without_pause(self, mut client: Client, over: Arc<AtomicBool>) {
        while !over.load(Ordering::Relaxed) {
            let began = Instant::now();
            let visitor = self.next.fetch_add(1, Ordering::Relaxed) as usize;
            let visitor = visitor % self.world.people.len();
            let outcome = client.sign_in(visitor).await;
            self.statistics.add(Class::SignIn, began.elapsed(), outcome);
        }
    }

    async fn one(&self, client: &mut Client, began: Instant) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let class = Class::of(number);
        let outcome = client.perform(class, number).await;
        self.statistics.add(class, began.elapsed(), outcome);
    }
}
