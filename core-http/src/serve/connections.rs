//! The open connections of a listener, and their limits.

use std::collections::HashMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;

use core_domain::gateway::client_network;
use tokio::task::{AbortHandle, Id, JoinSet};

use super::ServeOptions;
use super::activity::Activity;
use super::unread::UnreadBytes;

/// The limit because of which a new connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// Every connection of the client address has a request in progress.
    ForClient,
    /// Every connection of the listener has a request in progress.
    ForListener,
}

/// An open connection, as the listener sees it.
#[derive(Debug)]
struct OpenConnection {
    activity: Arc<Activity>,
    task: AbortHandle,
    client: IpAddr,
}

/// The open connections of a listener. All of them end when this value is dropped.
#[derive(Debug)]
pub(super) struct Connections {
    options: Arc<ServeOptions>,
    tasks: JoinSet<()>,
    open: HashMap<Id, OpenConnection>,
    /// The number of open connections per client.
    clients: HashMap<IpAddr, usize>,
    unread: Arc<UnreadBytes>,
}

impl Connections {
    pub(super) fn new(options: Arc<ServeOptions>, unread: Arc<UnreadBytes>) -> Self {
        Self {
            options,
            tasks: JoinSet::new(),
            open: HashMap::new(),
            clients: HashMap::new(),
            unread,
        }
    }

    /// Runs a connection of a client address as a task.
    pub(super) fn spawn(
        &mut self,
        peer: IpAddr,
        activity: Arc<Activity>,
        connection: impl Future<Output = ()> + Send + 'static,
    ) {
        let task = self.tasks.spawn(connection);
        let client = client_network(peer);
        *self.clients.entry(client).or_default() += 1;
        let open = OpenConnection {
            activity,
            task: task.clone(),
            client,
        };
        self.open.insert(task.id(), open);
    }

    /// Completes when a connection has ended, or was closed because too many bytes wait for clients.
    pub(super) async fn join_next(&mut self) {
        let ended = tokio::select! {
            ended = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => ended,
            () = self.unread.wait_for_excess() => return self.close_longest_blocked(),
        };
        match ended {
            Some(Ok((id, ()))) => self.remove(id),
            Some(Err(error)) => self.remove(error.id()),
            None => None,
        };
    }

    /// Removes a connection from the counts. Returns `None` for a connection that was already closed to make room.
    fn remove(&mut self, id: Id) -> Option<OpenConnection> {
        let removed = self.open.remove(&id)?;
        if let Some(count) = self.clients.get_mut(&removed.client) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.clients.remove(&removed.client);
            }
        }
        Some(removed)
    }

    /// Closes connections whose clients read nothing, the longest blocked first, until the waiting bytes of the others
    /// are below the limit.
    fn close_longest_blocked(&self) {
        let mut blocked: Vec<_> = self
            .open
            .values()
            .filter_map(|open| Some((open.activity.blocked_since()?, open)))
            .collect();
        blocked.sort_by_key(|(since, _)| *since);
        let mut excess = self.unread.excess();
        for (_, open) in blocked {
            if excess == 0 {
                return;
            }
            let held = open.activity.unread().waiting_bytes();
            if held > 0 {
                tracing::debug!(target: "core::serve", held, "a connection was closed: its client does not read");
                open.task.abort();
                excess = excess.saturating_sub(held);
            }
        }
    }

    /// Makes room for a connection of this client address, see [`ServeOptions::max_connections`].
    ///
    /// # Errors
    /// [`NoRoom`] if every connection that could be closed for it has a request in progress.
    pub(super) fn make_room(&mut self, peer: IpAddr) -> Result<(), NoRoom> {
        let client = client_network(peer);
        let count = self.clients.get(&client).copied().unwrap_or_default();
        let is_limited = !self.options.trusted_proxies.contains(peer);
        if is_limited
            && count >= self.options.max_connections_per_client.max(1)
            && !self.close_oldest(|open| open.client == client)
        {
            return Err(NoRoom::ForClient);
        }
        if self.open.len() >= self.options.max_connections.max(1) && !self.close_oldest(|_| true) {
            return Err(NoRoom::ForListener);
        }
        Ok(())
    }

    /// Closes the connection that has been without a request for longest, idle or with an incomplete head. Returns
    /// `false` if there is none.
    fn close_oldest(&mut self, is_candidate: impl Fn(&OpenConnection) -> bool) -> bool {
        loop {
            let waiting = self.open.iter().filter_map(|(id, open)| {
                let since = open.activity.waiting_since()?;
                is_candidate(open).then_some((since, *id))
            });
            let Some((_, id)) = waiting.min() else {
                return false;
            };
            let Some(open) = self.open.get(&id) else {
                return false;
            };
            // If its head was completed in the meantime, the connection has a request now.
            if open.activity.close_if_waiting() {
                open.task.abort();
                self.remove(id);
                return true;
            }
        }
    }

    /// Closes the connection that has been without a request for longest, so that a file descriptor becomes free.
    pub(super) fn free_descriptor(&mut self) {
        self.close_oldest(|_| true);
    }
}
