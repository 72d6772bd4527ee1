//! A tour of the suite's main features with live output. It uses only the public HTTP interface.
//!
//! Exits with status 1 if a step has an unexpected result.

mod billing;
mod client;
mod failure;
mod server;
mod show;
mod site;
mod tour;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::failure::Failure;
use crate::server::{Addresses, OwnServer};

/// Takes a tour: sign-up, a platform, a live site, a paid plan, suspension, and the removal of everything.
#[derive(Parser)]
struct Options {
    /// The base URL of a running server's gateway. Without it the tour starts its own server.
    #[arg(long, requires_all = ["iam", "service_key"])]
    gateway: Option<String>,
    /// The base URL of that server's IAM service.
    #[arg(long)]
    iam: Option<String>,
    /// The service key of that server.
    #[arg(long, env = "AUTH_API_KEY", hide_env_values = true)]
    service_key: Option<String>,
    /// The folder of the built site to deploy.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../site"))]
    site: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    match run(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nthe tour ended: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<(), Failure> {
    let (own, addresses) = match (options.gateway, options.iam, options.service_key) {
        (Some(gateway), Some(iam), Some(service_key)) => (
            None,
            Addresses {
                gateway,
                iam,
                service_key,
            },
        ),
        _ => {
            let (own, addresses) = OwnServer::start().await?;
            (Some(own), addresses)
        }
    };
    let outcome = tour::take(&addresses, &options.site).await;
    if let Some(own) = own {
        own.stop().await?;
    }
    outcome
}
