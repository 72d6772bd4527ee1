//! The open connections of a listener, and their limit.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, Id, JoinSet};

use super::activity::Activity;
use super::unread::UnreadBytes;

/// How often an idle connection is looked for at the limit.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The open connections of a listener; all of them end when this is dropped.
#[derive(Debug)]
pub(super) struct Connections {
    limit: usize,
    tasks: JoinSet<()>,
    open: HashMap<Id, (Arc<Activity>, AbortHandle)>,
    unread: Arc<UnreadBytes>,
}

impl Connections {
    pub(super) fn new(limit: usize, unread: Arc<UnreadBytes>) -> Self {
        Self {
            limit: limit.max(1),
            tasks: JoinSet::new(),
            open: HashMap::new(),
            unread,
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

    /// Completes when a connection has ended, or was closed because too many bytes wait for clients.
    pub(super) async fn ended(&mut self) {
        let ended = tokio::select! {
            ended = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => ended,
            () = self.unread.exceeded() => return self.close_longest_blocked(),
        };
        match ended {
            Some(Ok((id, ()))) => self.open.remove(&id),
            Some(Err(error)) => self.open.remove(&error.id()),
            None => None,
        };
    }

    /// Closes connections whose clients read nothing, the longest blocked first, until the others wait for fewer bytes than the
    /// limit.
    fn close_longest_blocked(&self) {
        let mut blocked: Vec<_> = self
            .open
            .values()
            .filter_map(|(activity, handle)| Some((activity.blocked_since()?, activity, handle)))
            .collect();
        blocked.sort_by_key(|(since, ..)| *since);
        let mut excess = self.unread.excess();
        for (_, activity, handle) in blocked {
            if excess == 0 {
                return;
            }
            let held = activity.unread().held();
            if held > 0 {
                tracing::debug!(target: "core::serve", held, "a connection was closed: its client does not read");
                handle.abort();
                excess = excess.saturating_sub(held);
            }
        }
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
