//! The rate limiter of requests. All users of the account in the process share it, and callers who wait go before jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::options::StripeOptions;

/// The pause after a 429 response that contains no time.
const DEFAULT_PAUSE: Duration = Duration::from_secs(1);

/// Maximum pause after a 429 response.
const MAX_PAUSE: Duration = Duration::from_hours(1);

/// The part of an allowed number of requests that may be sent at once by callers who wait.
const BURST_PART: u32 = 5;

/// Maximum lateness of a request that does not delay the next one. Timers are not more exact.
const LATENESS: Duration = Duration::from_millis(15);

/// The kind of caller. Requests of earlier kinds are sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Caller {
    /// A person who waits for the response.
    Person,
    /// A job of the job engine.
    Job,
}

/// The place of a request in the queue.
type Ticket = (Caller, u64);

/// An even schedule of requests. Callers who wait may be ahead of it by a few requests.
#[derive(Debug)]
struct Schedule {
    interval: Duration,
    tolerance: Duration,
    next: Instant,
}

impl Schedule {
    fn new(requests: u32, now: Instant) -> Self {
        // 2 % slower than allowed, because requests do not take equally long to the API.
        let interval = Duration::from_millis(1_020) / requests;
        Self {
            interval,
            tolerance: interval * (requests / BURST_PART).saturating_sub(1),
            next: now,
        }
    }

    /// Returns the time of the next request after `ahead` other ones.
    fn slot(&self, caller: Caller, ahead: u32, now: Instant) -> Instant {
        let due = self.next.max(now) + self.interval * ahead;
        match caller {
            Caller::Person => due.checked_sub(self.tolerance).unwrap_or(due),
            Caller::Job => due,
        }
    }

    fn take(&mut self, now: Instant) {
        let earliest = now.checked_sub(LATENESS).unwrap_or(now);
        self.next = self.next.max(earliest) + self.interval;
    }
}

/// Spreads requests over time: those of the account, and those of each endpoint.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    endpoint_requests: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    account: Schedule,
    endpoints: BTreeMap<&'static str, Schedule>,
    /// The endpoints of waiting requests.
    waiting: BTreeMap<Ticket, &'static str>,
    next_ticket: u64,
    /// No request is sent before this time.
    paused_until: Instant,
}

/// A request in the queue. Dropping it leaves the queue.
struct Place<'a> {
    limiter: &'a RateLimiter,
    ticket: Ticket,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.limiter.state().waiting.remove(&self.ticket);
    }
}

impl RateLimiter {
    pub(crate) fn new(options: &StripeOptions) -> Self {
        let now = Instant::now();
        Self {
            endpoint_requests: options.endpoint_requests,
            state: Mutex::new(State {
                account: Schedule::new(options.requests, now),
                endpoints: BTreeMap::new(),
                waiting: BTreeMap::new(),
                next_ticket: 0,
                paused_until: now,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request may be sent, but not beyond a time.
    ///
    /// # Errors
    /// The required waiting time, if it is too long.
    pub(crate) async fn acquire(
        &self,
        endpoint: &'static str,
        caller: Caller,
        latest: Instant,
    ) -> Result<(), Duration> {
        let place = self.enter(endpoint, caller);
        loop {
            let now = Instant::now();
            let Some(at) = self.state().next_try(place.ticket, endpoint, now) else {
                return Ok(());
            };
            if at > latest {
                return Err(at - now);
            }
            tokio::time::sleep_until(at).await;
        }
    }

    fn enter(&self, endpoint: &'static str, caller: Caller) -> Place<'_> {
        let mut state = self.state();
        let ticket = (caller, state.next_ticket);
        state.next_ticket += 1;
        state.waiting.insert(ticket, endpoint);
        let schedule = || Schedule::new(self.endpoint_requests, Instant::now());
        state.endpoints.entry(endpoint).or_insert_with(schedule);
        Place {
            limiter: self,
            ticket,
        }
    }

    /// Pauses all requests for the time that a response asked for. Returns the length of the pause.
    pub(crate) fn pause(&self, asked: Option<Duration>) -> Duration {
        let pause = asked.unwrap_or(DEFAULT_PAUSE).min(MAX_PAUSE);
        let until = Instant::now() + pause;
        let mut state = self.state();
        state.paused_until = state.paused_until.max(until);
        pause
    }
}

impl State {
    /// Takes a slot for a waiting request. Returns the time of the next try if there is none yet.
    fn next_try(
        &mut self,
        ticket: Ticket,
        endpoint: &'static str,
        now: Instant,
    ) -> Option<Instant> {
        let (mut of_endpoint, mut of_account) = (0, 0);
        let mut ready = BTreeSet::new();
        for (earlier, other) in self.waiting.range(..ticket) {
            of_endpoint += u32::from(*other == endpoint);
            // A request that waits for its own endpoint does not hold up others. Of the jobs that wait for one endpoint, only
            // the first is next.
            let is_ready = self.endpoint_slot(*earlier, other, 0, now) <= now;
            let is_next = earlier.0 == Caller::Person || ready.insert(*other);
            of_account += u32::from(is_ready && is_next);
        }
        let at = self
            .endpoint_slot(ticket, endpoint, of_endpoint, now)
            .max(self.account.slot(ticket.0, of_account, now))
            .max(self.paused_until);
        if at > now {
            return Some(at);
        }
        self.account.take(now);
        if let Some(own) = self.endpoints.get_mut(endpoint) {
            own.take(now);
        }
        None
    }

    fn endpoint_slot(
        &self,
        (caller, _): Ticket,
        endpoint: &str,
        ahead: u32,
        now: Instant,
    ) -> Instant {
        let own = self.endpoints.get(endpoint);
        own.map_or(now, |own| own.slot(caller, ahead, now))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const FAR: Duration = Duration::from_secs(3_600);

    fn limiter(requests: u32, endpoint_requests: u32) -> Arc<RateLimiter> {
        Arc::new(RateLimiter::new(&StripeOptions {
            requests,
            endpoint_requests,
            ..StripeOptions::default()
        }))
    }

    /// Requests many slots of an endpoint at once. Returns when each was given, since the start.
    async fn times(
        limiter: &Arc<RateLimiter>,
        caller: Caller,
        endpoint: &'static str,
        count: usize,
    ) -> Vec<Duration> {
        let start = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..count {
            let limiter = Arc::clone(limiter);
            tasks.spawn(async move {
                limiter
                    .acquire(endpoint, caller, start + FAR)
                    .await
                    .unwrap();
                start.elapsed()
            });
        }
        let mut times = tasks.join_all().await;
        times.sort_unstable();
        times
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_use_almost_the_whole_limit_and_never_exceed_it() {
        let limiter = limiter(100, 25);
        let times = times(&limiter, Caller::Job, "invoice.pay", 250).await;
        let last = times.last().unwrap().as_secs_f64();
        assert!(249.0 / last >= 24.0, "{last}");
        let window = |from: &Duration| {
            let until = *from + Duration::from_secs(1);
            times
                .iter()
                .filter(|at| (*from..until).contains(*at))
                .count()
        };
        assert!(times.iter().map(window).max() <= Some(25));
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_with_requests_to_four_endpoints_use_almost_the_whole_limit() {
        let limiter = limiter(100, 25);
        let start = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..200 {
            let limiter = Arc::clone(&limiter);
            tasks.spawn(async move {
                for endpoint in ["create", "add", "finalize", "pay"] {
                    let turn = limiter.acquire(endpoint, Caller::Job, start + FAR);
                    turn.await.unwrap();
                    // The response.
                    tokio::time::sleep(Duration::from_millis(1 + number % 7)).await;
                }
            });
        }
        tasks.join_all().await;
        let took = start.elapsed().as_secs_f64();
        assert!(200.0 / took >= 24.0, "{took}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_person_goes_before_waiting_jobs() {
        let limiter = limiter(100, 5);
        let jobs = Arc::clone(&limiter);
        let jobs = tokio::spawn(async move { times(&jobs, Caller::Job, "pay", 20).await });
        tokio::time::sleep(Duration::from_millis(500)).await;
        let person = times(&limiter, Caller::Person, "pay", 1).await;
        assert!(person[0] <= Duration::from_millis(204), "{person:?}");
        // The jobs keep their order and wait for one more slot.
        let last = *jobs.await.unwrap().last().unwrap();
        assert_eq!(last.as_millis() / 204, 20);
    }

    #[tokio::test(start_paused = true)]
    async fn other_endpoints_do_not_wait_for_a_busy_one() {
        let limiter = limiter(100, 5);
        let busy = Arc::clone(&limiter);
        let busy = tokio::spawn(async move { times(&busy, Caller::Job, "pay", 20).await });
        tokio::time::sleep(Duration::from_millis(1)).await;
        let other = times(&limiter, Caller::Job, "find", 1).await;
        assert!(other[0] <= Duration::from_millis(11), "{other:?}");
        busy.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn of_the_jobs_that_wait_for_one_endpoint_only_the_first_goes_before_others() {
        let limiter = limiter(100, 25);
        let _waiting: Vec<_> = (0..50)
            .map(|_| limiter.enter("create", Caller::Job))
            .collect();
        let pay = limiter.enter("pay", Caller::Job);
        let now = Instant::now();
        let at = limiter.state().next_try(pay.ticket, "pay", now);
        assert!(at.unwrap() - now <= Duration::from_millis(11), "{at:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_person_may_send_a_few_requests_at_once() {
        let limiter = limiter(100, 25);
        let times = times(&limiter, Caller::Person, "find", 6).await;
        assert_eq!(times[4], Duration::ZERO);
        assert!(times[5] > Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_would_wait_too_long_fails_and_takes_no_slot() {
        let limiter = limiter(100, 1);
        let now = Instant::now();
        let latest = now + Duration::from_millis(500);
        let acquire = || limiter.acquire("pay", Caller::Job, latest);
        assert_eq!(acquire().await, Ok(()));
        assert!(acquire().await.is_err());
        tokio::time::advance(Duration::from_millis(1_020)).await;
        let later = limiter.acquire("pay", Caller::Job, Instant::now()).await;
        assert_eq!(later, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn no_request_is_sent_during_a_pause() {
        let limiter = limiter(100, 25);
        let asked = Duration::from_secs(7);
        assert_eq!(limiter.pause(Some(asked)), asked);
        // A shorter pause does not end a longer one.
        assert_eq!(limiter.pause(None), DEFAULT_PAUSE);
        let latest = Instant::now() + Duration::from_secs(2);
        let refused = limiter.acquire("pay", Caller::Person, latest).await;
        assert_eq!(refused, Err(asked));
        assert_eq!(limiter.pause(Some(Duration::MAX)), MAX_PAUSE);
    }
}
