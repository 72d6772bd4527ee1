//! The cells that can be reached, so that one that is down does not stop the others.
//!
//! A unit that cannot reach a cell waits for seconds, with connections to other cells. So a task per cell asks its server once a
//! second, over a connection that requests do not use. While the server does not respond, units that need the cell fail at once,
//! also those that wait for it. Home is always tried: nothing works without it.

use std::time::Duration;

use core_domain::kernel::StoreError;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::config::HOME;

/// The pause between two questions to a cell.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

/// The maximum time of a response.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The number of questions in a row without a response after which a cell is away. One can be late because this process is busy.
pub(super) const MAX_FAILURES: u32 = 2;

/// The state of each cell: reached or away.
#[derive(Debug)]
pub(super) struct Availability(Vec<watch::Sender<bool>>);

impl Availability {
    /// Creates the state for this number of cells. At first, all of them count as reached.
    pub(super) fn of(cells: usize) -> Self {
        Self((0..cells).map(|_| watch::channel(true).0).collect())
    }

    /// Returns whether units that need the cell fail at once.
    pub(super) fn is_away(&self, cell: usize) -> bool {
        cell != HOME && !*self.0[cell].borrow()
    }

    /// Records whether the cell can be reached. Returns whether this is news.
    pub(super) fn record(&self, cell: usize, is_reached: bool) -> bool {
        self.0[cell].send_replace(is_reached) != is_reached
    }

    /// Runs a call that needs a cell and changes nothing, until the cell is away.
    ///
    /// # Errors
    /// Those of the call, and [`StoreError::Unavailable`].
    pub(super) async fn while_reached<T>(
        &self,
        cell: usize,
        call: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let refused = || StoreError::unavailable("the cell cannot be reached");
        if self.is_away(cell) {
            return Err(refused());
        }
        if cell == HOME {
            return call.await;
        }
        let mut state = self.0[cell].subscribe();
        tokio::select! {
            biased;
            outcome = call => outcome,
            // The sender lives as long as the cells.
            _ = state.wait_for(|is_reached| !is_reached) => Err(refused()),
        }
    }
}

/// Waits until the cell is asked again, and asks it: whether this question gets a response in time.
pub(super) async fn next_probe(probe: impl Future<Output = Result<(), StoreError>>) -> bool {
    sleep(INTERVAL).await;
    matches!(timeout(PROBE_TIMEOUT, probe).await, Ok(Ok(())))
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn calls_fail_while_their_cell_is_away_also_those_that_wait() {
        let availability = Availability::of(3);
        let waiting = availability.while_reached::<()>(1, pending());
        let away = async { availability.record(1, false) };
        let (waited, is_news) = tokio::join!(waiting, away);
        assert!(matches!(waited, Err(StoreError::Unavailable(_))) && is_news);
        assert!(!availability.record(1, false));
        assert!(availability.is_away(1) && !availability.is_away(2));
        let refused = availability.while_reached(1, async { Ok(()) }).await;
        assert!(refused.is_err());
        assert!(
            availability
                .while_reached(2, async { Ok(()) })
                .await
                .is_ok()
        );
        assert!(availability.record(1, true));
        assert!(
            availability
                .while_reached(1, async { Ok(()) })
                .await
                .is_ok()
        );
    }

    #[tokio::test]
    async fn home_is_always_tried() {
        let availability = Availability::of(2);
        availability.record(HOME, false);
        assert!(
            availability
                .while_reached(HOME, async { Ok(()) })
                .await
                .is_ok()
        );
    }
}
