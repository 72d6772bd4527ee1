//! The load: connections that send the next request as soon as they get a response.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::cpu;
use super::http::Connection;

/// The number of concurrent connections.
pub(crate) const CONNECTIONS: usize = 32;

/// Maximum time to wait for the required number of responses.
const MAX_WAIT: Duration = Duration::from_secs(15);

/// Returns the next request.
pub(crate) type Requests = Arc<dyn Fn() -> Arc<[u8]> + Send + Sync>;

/// Returns the same request every time.
pub(crate) fn always(request: Vec<u8>) -> Requests {
    let request: Arc<[u8]> = request.into();
    Arc::new(move || Arc::clone(&request))
}

/// A process to measure, and the requests that it gets.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) process: u32,
    pub(crate) address: SocketAddr,
    pub(crate) requests: Requests,
}

/// The duration of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
    /// The minimum number of responses for a meaningful round. The round is extended until it is reached.
    pub(crate) answers: u32,
}

/// The result of one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Processor time of the process per request, in microseconds.
    pub(crate) cpu_us: f64,
    /// Responses per second.
    pub(crate) per_second: f64,
}

impl Target {
    /// Sends requests on every connection for the given time. Panics if a response is not a success.
    pub(crate) fn sample(&self, times: Times) -> Sample {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(self.ask(times))
    }

    async fn ask(&self, times: Times) -> Sample {
        let answered = Arc::new(AtomicU32::new(0));
        let over = Arc::new(AtomicBool::new(false));
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            let client = client(self.clone(), Arc::clone(&answered), Arc::clone(&over));
            clients.push(tokio::spawn(client));
        }
        tokio::time::sleep(times.warm_up).await;
        let (since, cpu) = (Instant::now(), cpu::time_of(self.process));
        let before = answered.load(Ordering::Relaxed);
        let so_far = || answered.load(Ordering::Relaxed) - before;
        tokio::time::sleep(times.measured).await;
        while so_far() < times.answers && since.elapsed() < MAX_WAIT {
            tokio::time::sleep(times.measured).await;
        }
        let count = f64::from(so_far().max(1));
        let used = cpu::time_of(self.process).saturating_sub(cpu);
        let seconds = since.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        for client in clients {
            client.await.unwrap();
        }
        Sample {
            cpu_us: used.as_secs_f64() * 1e6 / count,
            per_second: count / seconds,
        }
    }
}

async fn client(target: Target, answered: Arc<AtomicU32>, over: Arc<AtomicBool>) {
    let mut connection = Connection::open(target.address).await.unwrap();
    while !over.load(Ordering::Relaxed) {
        let request = (target.requests)();
        let (status, body) = connection.ask(&request).await.unwrap();
        let body = || String::from_utf8_lossy(body).into_owned();
        assert!((200..300).contains(&status), "{status}: {}", body());
        answered.fetch_add(1, Ordering::Relaxed);
    }
}
