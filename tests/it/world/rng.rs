//! The random numbers of a simulation. The same seed produces the same run.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use core_domain::kernel::Entropy;
use core_domain::testing::SeededEntropy;

/// The source of every random number of a run.
#[derive(Clone, Debug)]
pub(crate) struct Rng(Arc<SeededEntropy>);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(SeededEntropy::new(seed)))
    }

    /// Returns a number from 0 to `below` - 1.
    pub(crate) fn below(&self, below: usize) -> usize {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        usize::from_le_bytes(bytes) % below
    }

    /// Yields to other tasks a random number of times, from zero to `most`.
    pub(crate) async fn pause(&self, most: usize) {
        for _ in 0..self.below(most + 1) {
            Yield(false).await;
        }
    }
}

struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Polls a future until it is ready. In a simulation a future waits only for its turn.
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
    }
}
