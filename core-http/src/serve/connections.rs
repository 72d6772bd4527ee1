//! The open connections of a listener, and their limit.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, Id, JoinSet};

use super::activity::Activity;

/// How often an idle connection is looked for at the limit.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The open connections of a listener; all of them end when this is dropped.
#[derive(Debug)]
pub(super) struct Connections {
    limit: usize,
    tasks: JoinSet<()>,
    open: HashMap<Id, (Arc<Activity>, AbortHandle)>,
}

impl Connections {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            tasks: JoinSet::new(),
            open: HashMap::new(),
        }
    }

    pub(super) fn spawn(
        &mut self,
        activity: Arc<Activity>,
        connection: impl Future<Output = ()> + Send + 'static,
    ) {
        let handle = self.tasks.spawn(connection);
        self.open.insert(handle.id(), (activity, handle));
    }

    /// Completes when a connection has ended; never, while there is none.
    pub(super) async fn ended(&mut self) {
        let ended = match self.tasks.join_next_with_id().await {
            None => return std::future::pending().await,
            Some(Ok((id, ()))) => id,
            Some(Err(error)) => error.id(),
        };
        self.open.remove(&ended);
    }

    /// Completes when there are fewer connections than the limit. Closes an idle one for that.
    pub(super) async fn below_limit(&mut self) {
        while self.open.len() >= self.limit {
            self.close_longest_idle();
            tokio::select! {
                () = self.ended() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    }

    /// Closes the connection that has been idle longest, if one is idle.
    pub(super) fn close_longest_idle(&self) {
        let idle = self.open.values().filter_map(|(activity, handle)| {
            let since = activity.idle_since()?;
            Some((since, activity, handle))
        });
        let Some((_, activity, handle)) = idle.min_by_key(|(since, ..)| *since) else {
            return;
        };
        if activity.close_if_idle() {
            handle.abort();
        }
    }
}
