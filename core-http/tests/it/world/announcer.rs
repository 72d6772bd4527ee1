//! Notifications of event streams after commits.

use std::sync::Arc;

use core_domain::kernel::{Effect, Effects};
use core_domain::port::{AnnouncingStore, CommitListener};
use core_http::kernel::{AccessSignal, App, JobSignal, SealSignal};

use super::World;

/// Notifies followers of sealed entries, events of jobs and changes of access, as the suite does.
#[derive(Debug)]
struct Announcer {
    sealed: SealSignal,
    jobs: JobSignal,
    access: AccessSignal,
}

impl CommitListener for Announcer {
    fn on_committed(&self, effects: &Effects) {
        for effect in effects.iter() {
            match effect {
                Effect::AuditSealed => self.sealed.notify(),
                Effect::JobProgressed(job) => self.jobs.notify(job),
                _ => self.access.notify(effect),
            }
        }
    }
}

/// Makes the store of the services notify followers of commits.
pub(crate) fn announce_commits(app: &mut App) {
    let listener = Arc::new(Announcer {
        sealed: app.sealed.clone(),
        jobs: app.jobs.clone(),
        access: app.access.clone(),
    });
    app.store = Arc::new(AnnouncingStore::new(Arc::clone(&app.store), listener));
}

/// Creates a world whose followers are notified of commits.
pub(crate) fn world_with_notifications() -> World {
    World::with(announce_commits)
}
