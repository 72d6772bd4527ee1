//! Counts the response bytes that wait in memory for clients to read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The waiting bytes of all connections of a listener, and their limit.
#[derive(Debug)]
pub(super) struct UnreadBytes {
    limit: usize,
    total: AtomicUsize,
    /// Notified when connections whose clients do not read may exceed the limit.
    exceeded: Notify,
}

impl UnreadBytes {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            total: AtomicUsize::new(0),
            exceeded: Notify::new(),
        })
    }

    /// Returns the number of bytes above the limit.
    pub(super) fn excess(&self) -> usize {
        let total = self.total.load(Ordering::Relaxed);
        total.saturating_sub(self.limit)
    }

    /// Completes when the limit may be exceeded.
    pub(super) async fn wait_for_excess(&self) {
        self.exceeded.notified().await;
    }

    fn check(&self) {
        if self.excess() > 0 {
            self.exceeded.notify_one();
        }
    }
}

/// The waiting bytes of one connection. The memory of a response is free when the whole response is written.
#[derive(Debug)]
pub(super) struct ConnectionUnread {
    listener: Arc<UnreadBytes>,
    waiting: AtomicUsize,
    unwritten: AtomicUsize,
}

impl ConnectionUnread {
    pub(super) const fn new(listener: Arc<UnreadBytes>) -> Self {
        Self {
            listener,
            waiting: AtomicUsize::new(0),
            unwritten: AtomicUsize::new(0),
        }
    }

    /// Returns the number of waiting bytes.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Counts the bytes of a response that begins to wait.
    pub(super) fn hold(&self, bytes: usize) {
        self.unwritten.fetch_add(bytes, Ordering::Relaxed);
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        self.listener.total.fetch_add(bytes, Ordering::Relaxed);
        self.listener.check();
    }

    /// Counts bytes that were written to the socket.
    pub(super) fn count_written(&self, bytes: usize) {
        let unwritten = self.unwritten.load(Ordering::Relaxed);
        if unwritten == 0 {
            return;
        }
        let left = unwritten.saturating_sub(bytes);
        self.unwritten.store(left, Ordering::Relaxed);
        if left == 0 {
            self.release();
        }
    }

    /// Checks the limit when the client reads too slowly for the next byte.
    pub(super) fn check_limit(&self) {
        self.listener.check();
    }

    /// Releases all waiting bytes, because everything is written or the connection has ended.
    pub(super) fn release(&self) {
        self.unwritten.store(0, Ordering::Relaxed);
        let held = self.waiting.swap(0, Ordering::Relaxed);
        self.listener.total.fetch_sub(held, Ordering::Relaxed);
    }
}
