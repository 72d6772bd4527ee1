//! Environments.

use super::open_enum::open_enum;

open_enum! {
    /// An environment of a platform.
    pub enum Environment {
        /// The environment for development.
        Dev = "dev",
        /// The environment for acceptance tests.
        Stg = "stg",
        /// The environment for customers.
        Prod = "prod",
    }
}
