//! The services a process can run, and their ports.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A service of the suite; the word is its name everywhere.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ServiceName {
    /// The public entry point.
    Gateway,
    /// Identity and access.
    Iam,
    /// Platforms and what belongs to them.
    Registry,
    /// Jobs.
    Provisioning,
    /// The command-line client's backend.
    Cli,
    /// Stack templates.
    Stacks,
}

impl ServiceName {
    /// How far above the gateway's port the service listens.
    #[must_use]
    pub(crate) const fn port_offset(self) -> u16 {
        match self {
            Self::Gateway => 0,
            Self::Iam => 1,
            Self::Registry => 2,
            Self::Provisioning => 3,
            Self::Cli => 4,
            Self::Stacks => 6,
        }
    }

    /// The service's name.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Iam => "iam",
            Self::Registry => "registry",
            Self::Provisioning => "provisioning",
            Self::Cli => "cli",
            Self::Stacks => "stacks",
        }
    }
}

/// How far above the gateway's port the local sites are served.
pub(crate) const SITES_PORT_OFFSET: u16 = 10;
