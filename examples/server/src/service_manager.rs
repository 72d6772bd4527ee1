//! The protocol of service managers such as systemd: inherited sockets, notices about the state, and the watchdog.
//!
//! Everything here is without effect if the process was not started by a service manager.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::TcpListener;
use std::time::Duration;

use listenfd::ListenFd;
use sd_notify::NotifyState;

/// The time by which each report extends the time that the service manager waits for the start.
const START_EXTENSION: Duration = Duration::from_secs(30);

/// Takes the listening sockets that the service manager has opened, by port. Call it once.
///
/// # Errors
/// A socket cannot be used.
pub(crate) fn inherited_listeners() -> std::io::Result<HashMap<u16, TcpListener>> {
    let mut inherited = ListenFd::from_env();
    let mut listeners = HashMap::new();
    for at in 0..inherited.len() {
        if let Some(listener) = inherited.take_tcp_listener(at)? {
            listener.set_nonblocking(true)?;
            listeners.insert(listener.local_addr()?.port(), listener);
        }
    }
    Ok(listeners)
}

/// Runs the start of the server, and reports that it continues. Migrations can take longer than the service manager waits for
/// a start, and one that was interrupted would begin again.
pub(crate) async fn extending_start<T>(start: impl Future<Output = T>) -> T {
    tokio::select! {
        outcome = start => outcome,
        never = extend_start() => match never {},
    }
}

async fn extend_start() -> Infallible {
    let mut interval = tokio::time::interval(START_EXTENSION / 3);
    let micros = u32::try_from(START_EXTENSION.as_micros()).unwrap_or(u32::MAX);
    loop {
        interval.tick().await;
        notify(&[NotifyState::ExtendTimeoutUsec(micros)]);
    }
}

/// Reports that the server accepts requests, and starts to feed the watchdog.
pub(crate) fn notify_ready() {
    notify(&[NotifyState::Ready]);
    let Some(timeout) = sd_notify::watchdog_enabled() else {
        return;
    };
    // The pings come from a task, so they stop when the runtime no longer runs tasks.
    tokio::spawn(async move {
        let mut interval = tokio::time::interval(timeout / 3);
        loop {
            interval.tick().await;
            notify(&[NotifyState::Watchdog]);
        }
    });
}

/// Reports that the server is stopping.
pub(crate) fn notify_stopping() {
    notify(&[NotifyState::Stopping]);
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the service manager cannot be notified");
    }
}
