//! Who did something to a job.

use crate::kernel::Context;

/// The kind of actor that executes jobs.
const WORKER: &str = "worker";

/// Who did something to a job.
#[derive(
    Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Actor {
    /// `user`, `service`, `system`, `worker` or `anonymous`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Which one.
    pub id: String,
}

impl Actor {
    /// The caller of a use case.
    #[must_use]
    pub fn caller(cx: &Context) -> Self {
        Self {
            kind: cx.caller.kind().to_owned(),
            id: cx.caller.actor_id().to_owned(),
        }
    }

    /// A worker, by its owner id.
    #[must_use]
    pub fn worker(owner: &str) -> Self {
        Self {
            kind: WORKER.to_owned(),
            id: owner.to_owned(),
        }
    }

    /// Tells whether it is a worker.
    #[must_use]
    pub fn is_worker(&self) -> bool {
        self.kind == WORKER
    }

    /// The suite itself.
    #[must_use]
    pub fn system() -> Self {
        Self {
            kind: "system".to_owned(),
            id: "system".to_owned(),
        }
    }
}
