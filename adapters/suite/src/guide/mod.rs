//! Guides for people who run or embed the suite.
//!
//! | guide | for |
//! |---|---|
//! | [`getting_started`] | a first server, account, platform and site |
//! | [`embedding`] | the suite inside your own program |
//! | [`accounts`] | people, organizations, roles, API keys, second factors |
//! | [`deploying`] | sites, branches, previews, hostnames |
//! | [`cli`] | the command-line client, also in CI |
//! | [`stacks`] | templates, activation, features, configuration |
//! | [`billing`] | plans, subscriptions, invoices, credits |
//! | [`jobs`] | states, retries, holds, dry runs, job kinds of your own |
//! | [`webhooks`] | signed messages about changes |
//! | [`cloudflare`] | infrastructure in a Cloudflare account |
//! | [`stores`] | memory, SQLite, Postgres, or a store of your own |
//! | [`operations`] | configuration, signals, many nodes, health, logs, backups |
//! | [`security`] | the protections of an installation |
//! | [`upgrading`] | new versions and migrations |
//!
//! `tests/guides/run` runs every command in a `sh` block of these pages, in one shell and in the order of the table. It also
//! runs the `console` blocks of [`operations`], each with the servers that it names.

/// Declares the module of a guide. Its text is the Markdown file with the same name. Every guide can link to the others
/// by name, as in `[Jobs][jobs]`.
macro_rules! guides {
    ($($name:ident)+) => {
        $(
            #[doc = include_str!(concat!(stringify!($name), ".md"))]
            ///
            /// [getting_started]: crate::guide::getting_started
            /// [embedding]: crate::guide::embedding
            /// [accounts]: crate::guide::accounts
            /// [deploying]: crate::guide::deploying
            /// [cli]: crate::guide::cli
            /// [billing]: crate::guide::billing
            /// [jobs]: crate::guide::jobs
            /// [stores]: crate::guide::stores
            /// [operations]: crate::guide::operations
            /// [security]: crate::guide::security
            pub mod $name {}
        )+
    };
}

guides! {
    getting_started
    embedding
    accounts
    deploying
    cli
    stacks
    billing
    jobs
    webhooks
    cloudflare
    stores
    operations
    security
    upgrading
}

/// The Rust code in the README is tested like that of the guides.
#[cfg(doctest)]
#[doc = include_str!("../../../../README.md")]
mod readme {}
