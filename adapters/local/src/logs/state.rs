//! The state that the task that writes lines shares with readers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use core_domain::port::{LogListener, ResourceRef};
use tokio::sync::watch;

/// The state that the writer shares with readers.
#[derive(Debug)]
pub(super) struct LogState {
    /// All lines up to this id are written.
    pub(super) written: watch::Sender<u64>,
    watches: Mutex<Vec<Weak<Watch>>>,
}

/// The interest of a reader in new lines.
#[derive(Debug)]
pub(super) struct Watch {
    state: Mutex<WatchState>,
    listener: Option<Arc<dyn LogListener>>,
}

#[derive(Debug, Default)]
struct WatchState {
    objects: BTreeSet<(&'static str, String)>,
    has_news: bool,
}

impl LogState {
    pub(super) fn new(last_id: u64) -> Self {
        Self {
            written: watch::Sender::new(last_id),
            watches: Mutex::default(),
        }
    }

    /// Creates the watch of a new reader. It has news, so that the reader reads at first.
    pub(super) fn watch(&self, listener: Option<Arc<dyn LogListener>>) -> Arc<Watch> {
        let watch = Arc::new(Watch {
            state: Mutex::new(WatchState {
                has_news: true,
                ..WatchState::default()
            }),
            listener,
        });
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.retain(|watch| watch.strong_count() > 0);
        watches.push(Arc::downgrade(&watch));
        watch
    }

    /// Announces that all lines up to `last_id` are written, and that these objects have new lines.
    pub(super) fn publish(&self, last_id: u64, objects: &[ResourceRef]) {
        self.written
            .send_modify(|written| *written = last_id.max(*written));
        let watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let watches: Vec<_> = watches.iter().filter_map(Weak::upgrade).collect();
        for watch in watches {
            watch.notify_of(objects);
        }
    }
}

impl Watch {
    fn notify_of(&self, objects: &[ResourceRef]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_watched = |object: &ResourceRef| {
            let key = (object.resource_type.as_str(), object.name.clone());
            state.objects.contains(&key)
        };
        if !objects.iter().any(is_watched) {
            return;
        }
        state.has_news = true;
        drop(state);
        if let Some(listener) = &self.listener {
            listener.on_lines();
        }
    }

    /// Sets the objects whose lines are news.
    pub(super) fn set_objects<'a>(&self, objects: impl IntoIterator<Item = &'a ResourceRef>) {
        let key = |object: &ResourceRef| (object.resource_type.as_str(), object.name.clone());
        let objects = objects.into_iter().map(key).collect();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.objects = objects;
    }

    /// Makes the next read look for lines.
    pub(super) fn set_news(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.has_news = true;
    }

    /// Returns whether there was news since the last call.
    pub(super) fn take_news(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.has_news)
    }
}
