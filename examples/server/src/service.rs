//! The services that a process can run, and their ports.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A service of the suite, with the name that is used in options and output.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ServiceName {
    /// The public entry point.
    Gateway,
    /// Identity and access management.
    Iam,
    /// Platforms, their entities and resources.
    Registry,
    /// Provisioning jobs and their history.
    Provisioning,
    /// The backend of the command-line client.
    Cli,
    /// The registry of stack templates.
    Stacks,
}

impl ServiceName {
    /// The distance of the service's port from the gateway's port.
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

    /// Returns the service's name.
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

/// The distance of the local sites' port from the gateway's port.
pub(crate) const SITES_PORT_OFFSET: u16 = 10;
