//! The commands, one module per subject.

mod account;
pub(crate) mod completions;
mod deploy;
mod deployments;
mod domains;
pub(crate) mod dotenv;
mod features;
mod follow;
mod jobs;
mod link;
mod login;
mod logs;
mod release;
mod secrets;
mod stacks;

use crate::args::Command;
use crate::context::Context;
use crate::failure::Result;

/// Runs a command.
pub(crate) async fn run(context: &Context, command: Command) -> Result<()> {
    match command {
        Command::Login(args) => login::login(context, &args).await,
        Command::Logout => login::logout(context).await,
        Command::Whoami => account::whoami(context).await,
        Command::Platforms => account::list_platforms(context).await,
        Command::Link(args) => link::link(context, args.target.as_deref()).await,
        Command::Deploy(args) => deploy::deploy(context, &args).await,
        Command::Deployments(args) => deployments::list(context, args).await,
        Command::Open(args) => deployments::open_site(context, &args).await,
        Command::Rollback(args) => release::roll_back(context, &args).await,
        Command::Promote(args) => release::promote(context, &args).await,
        Command::Pin(args) => release::pin(context, args.deployment).await,
        Command::Unpin(args) => release::unpin(context, args.deployment).await,
        Command::Secrets(command) => secrets::run(context, command).await,
        Command::Features(args) => features::run(context, args.command).await,
        Command::Domains(command) => domains::run(context, command).await,
        Command::Jobs(command) => jobs::run(context, command).await,
        Command::Logs(args) => logs::print(context, args).await,
        Command::Stacks(command) => stacks::run(context, command).await,
        Command::Completions { shell } => completions::print(shell),
    }
}
