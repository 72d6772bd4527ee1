//! The effects of a commit are announced even if its caller is dropped, on every store.

use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use core_domain::kernel::{Effect, Effects, OutboxId, Timestamp};
use core_domain::port::{
    AnnouncingStore, CommitListener, DetachedCommit, Mode, Store, UnitOfWork, Within,
};
use core_domain::shared::{OutboxMessage, OutboxQuery};
use core_domain::testing::{RecordKey, SeededEntropy};
use core_testkit::manual_clock;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::world::Backend;

/// Records announcements, and completes commits on the runtime.
#[derive(Debug)]
struct Listener {
    announced: Mutex<Vec<Effects>>,
    heard: Notify,
    runtime: Handle,
}

impl CommitListener for Listener {
    fn on_committed(&self, effects: &Effects) {
        self.announced.lock().unwrap().push(effects.clone());
        self.heard.notify_one();
    }

    fn run_detached(&self, rest: DetachedCommit) {
        self.runtime.spawn(rest);
    }
}

/// Inserts a message with an effect. Returns the unit before its commit.
async fn unit(store: &dyn Store, number: u32) -> Box<dyn UnitOfWork> {
    let mut uow = store.begin(Mode::Write).await.unwrap();
    let now = Timestamp::from_seconds(1_800_000_000);
    let message = OutboxMessage {
        id: OutboxId::generate(now, &SeededEntropy::new(number.into())),
        topic: "thing".to_owned(),
        payload: json!({}),
        attempts: 0,
        run_at: now,
        created_at: now,
    };
    let repositories = uow.repositories(RecordKey::for_tests());
    repositories
        .outbox_messages()
        .insert(message)
        .await
        .unwrap();
    uow.effects().add(Effect::MessageQueued);
    uow
}

async fn messages(store: &dyn Store) -> usize {
    let mut uow = store.begin(Mode::Read).await.unwrap();
    let all = OutboxQuery::DueAt(Timestamp::from_seconds(4_000_000_000));
    let messages = uow.repositories(RecordKey::for_tests()).outbox_messages();
    messages
        .list(Within::Installation, &all, 100)
        .await
        .unwrap()
        .len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_caller_is_dropped_is_completed_and_announced() {
    for backend in Backend::ALL {
        let opened = backend.open(manual_clock()).await;
        let listener = Arc::new(Listener {
            announced: Mutex::default(),
            heard: Notify::new(),
            runtime: Handle::current(),
        });
        let store = AnnouncingStore::new(opened.store, listener.clone());
        // The commit is dropped after this many polls. The store continues in between.
        for polls in 1..=4 {
            let mut commit = unit(&store, polls).await.commit();
            for _ in 0..polls {
                let mut context = Context::from_waker(Waker::noop());
                if commit.as_mut().poll(&mut context).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            drop(commit);
            let heard = tokio::time::timeout(Duration::from_secs(60), listener.heard.notified());
            heard.await.expect("the commit is announced");
            let expected = usize::try_from(polls).unwrap();
            // The listener was notified, so the committed message is visible.
            assert_eq!(messages(&store).await, expected, "{backend:?}");
            let announced = listener.announced.lock().unwrap();
            assert_eq!(announced.len(), expected);
            assert!(
                announced
                    .iter()
                    .all(|effects| effects.iter().eq([&Effect::MessageQueued]))
            );
        }
    }
}
