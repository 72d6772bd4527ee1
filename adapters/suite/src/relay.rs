//! Sends what waits in the outbox, on tokio.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::Entropy;
use core_domain::port::{Outlet, OutletError, Store};
use core_domain::shared::OutboxMessage;
use core_domain::use_case::outbox::relay;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// How often the outbox is looked at when nobody calls.
const POLL: Duration = Duration::from_secs(1);

/// Writes every message to the log, for installations where nobody else listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogOutlet;

#[async_trait]
impl Outlet for LogOutlet {
    async fn deliver(&self, message: &OutboxMessage) -> Result<(), OutletError> {
        tracing::info!(target: "core::outbox", id = %message.id, topic = message.topic, payload = %message.payload, "message");
        Ok(())
    }
}

/// Sends until it is stopped. Dropped, it is cut off; what it was sending is sent again.
#[derive(Debug)]
pub(crate) struct RelayHandle {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl RelayHandle {
    /// Lets the delivery under way end.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        // One that panicked has stopped as well.
        let _ = (&mut self.task).await;
    }
}

impl Drop for RelayHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the relay works with.
pub(crate) struct Relay {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) outlet: Arc<dyn Outlet>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) wake: Arc<Notify>,
}

impl Relay {
    /// Starts sending on the current tokio runtime.
    pub(crate) fn start(self) -> RelayHandle {
        let (stop, stopped) = watch::channel(false);
        RelayHandle {
            stop,
            task: tokio::spawn(self.run(stopped)),
        }
    }

    async fn run(self, mut stopped: watch::Receiver<bool>) {
        while !*stopped.borrow() {
            match relay(&*self.store, &*self.outlet, &*self.entropy).await {
                Ok(relayed) if !relayed.is_idle() => continue,
                Ok(_) => {}
                Err(error) => tracing::warn!(?error, "the outbox could not be sent"),
            }
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(POLL) => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use core_domain::kernel::{Context, ManualClock, SeededEntropy, Timestamp};
    use core_domain::port::transact;
    use core_domain::shared::send;
    use core_domain::use_case::outbox::Relayed;
    use core_storage::memory::{MemoryConfig, open};
    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;

    /// Takes messages, refuses those of one topic, or dies with them.
    #[derive(Debug, Default)]
    struct Listener {
        heard: Mutex<Vec<String>>,
        refuses: Option<&'static str>,
        dies: bool,
    }

    #[async_trait]
    impl Outlet for Listener {
        async fn deliver(&self, message: &OutboxMessage) -> Result<(), OutletError> {
            if self.dies {
                std::future::pending::<()>().await;
            }
            if self.refuses == Some(&message.topic) {
                return Err(OutletError("not now".to_owned()));
            }
            self.heard.lock().unwrap().push(message.topic.clone());
            Ok(())
        }
    }

    struct World {
        clock: Arc<ManualClock>,
        store: Arc<dyn Store>,
        entropy: SeededEntropy,
    }

    impl World {
        async fn with(topics: &[&'static str]) -> Self {
            let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_000)));
            let store = open(MemoryConfig {
                clock: clock.clone(),
                cursor_key: [1; 32].into(),
            });
            let cx = Context::system(Arc::new(SeededEntropy::new(1)));
            for topic in topics {
                let cx = &cx;
                transact(store.as_ref(), |uow, _| {
                    Box::pin(async move { send(cx, uow, topic, json!({})).await })
                })
                .await
                .unwrap();
            }
            let entropy = SeededEntropy::new(2);
            Self {
                clock,
                store,
                entropy,
            }
        }

        async fn relay(&self, listener: &Listener) -> Relayed {
            let relayed = relay(self.store.as_ref(), listener, &self.entropy).await;
            relayed.unwrap()
        }
    }

    #[tokio::test]
    async fn a_message_is_delivered_once_and_forgotten() {
        let world = World::with(&["first", "second"]).await;
        let listener = Listener::default();
        assert_eq!(world.relay(&listener).await.delivered, 2);
        assert!(world.relay(&listener).await.is_idle());
        assert_eq!(*listener.heard.lock().unwrap(), ["first", "second"]);
    }

    #[tokio::test]
    async fn a_message_that_is_not_taken_holds_up_nobody_and_comes_again_after_a_pause() {
        let world = World::with(&["bad", "good"]).await;
        let listener = Listener {
            refuses: Some("bad"),
            ..Listener::default()
        };
        let both = Relayed {
            delivered: 1,
            kept: 1,
        };
        assert_eq!(world.relay(&listener).await, both);
        assert!(world.relay(&listener).await.is_idle());
        world.clock.advance(Duration::from_secs(2));
        let willing = Listener::default();
        assert_eq!(world.relay(&willing).await.delivered, 1);
        assert_eq!(*willing.heard.lock().unwrap(), ["bad"]);
    }

    #[tokio::test]
    async fn what_somebody_took_and_died_with_comes_again() {
        let world = World::with(&["lost"]).await;
        let dying = Listener {
            dies: true,
            ..Listener::default()
        };
        assert!(
            relay(world.store.as_ref(), &dying, &world.entropy)
                .now_or_never()
                .is_none()
        );
        let next = Listener::default();
        assert!(world.relay(&next).await.is_idle());
        world.clock.advance(Duration::from_secs(60));
        assert_eq!(world.relay(&next).await.delivered, 1);
    }
}
