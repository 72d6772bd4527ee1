//! The life of a deployment.

use crate::kernel::{state_machine, text_enum};

text_enum! {
    /// Where a deployment stands.
    pub enum DeploymentStatus {
        /// Waiting for its turn.
        Queued = "queued",
        /// Its files are sent to the provider.
        Uploading = "uploading",
        /// The provider puts it up.
        Deploying = "deploying",
        /// Served. Never left.
        Active = "active",
        /// Did not work. Never left.
        Failure = "failure",
        /// Called off. Never left.
        Canceled = "canceled",
    }
}

use DeploymentStatus::{Active, Canceled, Deploying, Failure, Queued, Uploading};

impl DeploymentStatus {
    /// The statuses of a deployment that has not ended.
    pub const IN_FLIGHT: &'static [Self] = &[Queued, Uploading, Deploying];

    /// Tells whether it has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Active | Failure | Canceled)
    }
}

state_machine! {
    /// What happens to a deployment: forward alone, and out of every status that has not ended. It is created `queued`.
    pub enum DeploymentEvent moves DeploymentStatus {
        /// Its files are sent.
        Start = "start": [Queued] => Uploading, "deployment.started";
        /// The provider has its files.
        Upload = "upload": [Queued, Uploading] => Deploying, "deployment.uploaded";
        /// It is served.
        Activate = "activate": [Queued, Uploading, Deploying] => Active, "deployment.activated";
        /// It did not work.
        Fail = "fail": [Queued, Uploading, Deploying] => Failure, "deployment.failed";
        /// It was called off.
        Cancel = "cancel": [Queued, Uploading, Deploying] => Canceled, "deployment.canceled";
    }
}
