//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use core_client::Credential;
use core_client::types::deployment::DeploymentStatus;
use core_client::types::environment::Environment;
use core_client::types::job::JobStatus;

use crate::inputs::{
    parse_branch, parse_environment, parse_feature, parse_hostname, parse_id, parse_message,
    parse_new_feature, parse_platform, parse_profile_name, parse_resource_name, parse_stack,
    parse_stack_version, parse_url,
};

/// The command-line client of the Platform Control API: deploys sites, sets secrets, follows logs and jobs.
///
/// Exit codes: 0 success, 1 failure, 2 wrong usage, 3 not found, 4 not signed in or not allowed, 5 conflict.
#[derive(Debug, Parser)]
#[command(
    name = "core-cli",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The options of every command.
#[derive(Args, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// The profile: a named installation with its sign-in. Default: that of core.toml, or `default`.
    #[arg(long, global = true, env = "CORE_PROFILE", value_name = "NAME", value_parser = parse_profile_name)]
    pub(crate) profile: Option<String>,
    /// The platform, by id or slug. Default: that of core.toml, or the only one.
    #[arg(long, global = true, env = "CORE_PLATFORM", value_name = "PLATFORM", value_parser = parse_platform)]
    pub(crate) platform: Option<String>,
    /// The address of the gateway. Default: that of core.toml or of the profile, or http://127.0.0.1:8080.
    #[arg(long, global = true, env = "CORE_API_URL", value_name = "URL", value_parser = parse_url)]
    pub(crate) api_url: Option<String>,
    /// The format of the result on standard output.
    #[arg(long, global = true, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OutputFormat,
    /// Answer yes to every question.
    #[arg(long, short, global = true)]
    pub(crate) yes: bool,
    /// A token that replaces the sign-in: an API key (`core_...`) or a bearer token.
    #[arg(
        long,
        global = true,
        env = "CORE_TOKEN",
        hide = true,
        hide_env_values = true
    )]
    pub(crate) token: Option<TokenOption>,
}

/// The value of `CORE_TOKEN`. An empty value, as CI systems set it for a missing secret, counts as none.
///
/// An invalid value is no error of the parser, because its message would quote the value.
#[derive(Clone, Debug)]
pub(crate) enum TokenOption {
    Absent,
    Invalid,
    Credential(Credential),
}

impl From<&str> for TokenOption {
    fn from(text: &str) -> Self {
        let text = text.trim();
        if text.is_empty() {
            return Self::Absent;
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Self::Invalid;
        }
        Self::Credential(Credential::from_text(text))
    }
}

/// The format of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// One JSON document; streams have one per line.
    Json,
    /// Text for people, as aligned columns.
    Table,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sign in with the browser, on this or another device.
    Login(LoginArgs),
    /// End the session, here and on the server.
    Logout,
    /// Print the signed-in person, platform and role.
    Whoami,
    /// List the platforms of your organization.
    Platforms,
    /// Choose the platform of this folder, and write it to core.toml.
    Link(LinkArgs),
    /// Deploy a built site. Only files that the server does not have are sent.
    Deploy(DeployArgs),
    /// List the deployments, newest first.
    Deployments(DeploymentsArgs),
    /// Open the site in the browser.
    Open(OpenArgs),
    /// Make an earlier deployment live again.
    Rollback(RollbackArgs),
    /// Make a preview live.
    Promote(PromoteArgs),
    /// Keep the live deployment: refuse other deployments to production.
    Pin(PinArgs),
    /// Allow deployments to production again.
    Unpin(PinArgs),
    /// Set, list and delete secrets. Their values are never printed.
    #[command(subcommand)]
    Secrets(SecretsCommand),
    /// List, activate and deactivate features.
    Features(FeaturesArgs),
    /// Add hostnames, and see the DNS records that they need.
    #[command(subcommand)]
    Domains(DomainsCommand),
    /// List, watch and retry jobs.
    #[command(subcommand)]
    Jobs(JobsCommand),
    /// Print the log lines of workers and sites.
    Logs(LogsArgs),
    /// Activate stacks on the platform.
    #[command(subcommand)]
    Stacks(StacksCommand),
    /// Print the completions for a shell.
    Completions {
        /// The shell for which completions are printed.
        shell: Shell,
    },
}

#[derive(Args, Debug)]
pub(crate) struct LoginArgs {
    /// The address of IAM. Default: it is looked up at the gateway.
    #[arg(long, env = "CORE_IAM_URL", value_name = "URL", value_parser = parse_url)]
    pub(crate) iam_url: Option<String>,
    /// Print the address, and do not open the browser.
    #[arg(long)]
    pub(crate) no_browser: bool,
}

#[derive(Args, Debug)]
pub(crate) struct LinkArgs {
    /// The platform, by id or slug. Default: you are asked.
    #[arg(value_name = "PLATFORM", value_parser = parse_platform)]
    pub(crate) target: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct DeployArgs {
    /// The folder with the built site. Default: that of core.toml, or the present folder.
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// The branch. `production` and the production branch of core.toml are the live site, others are previews. Default:
    /// production.
    #[arg(long, value_name = "BRANCH", value_parser = parse_branch)]
    pub(crate) branch: Option<String>,
    /// A description of the deployment, for example the commit.
    #[arg(long, short, value_name = "TEXT", value_parser = parse_message)]
    pub(crate) message: Option<String>,
    /// Return as soon as the site is uploaded.
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DeploymentsArgs {
    /// Only deployments of this branch.
    #[arg(long, value_name = "BRANCH", value_parser = parse_branch)]
    pub(crate) branch: Option<String>,
    /// Only deployments in this status: queued, uploading, deploying, active, failure or canceled.
    #[arg(long, value_name = "STATUS", value_parser = parse_deployment_status)]
    pub(crate) status: Option<DeploymentStatus>,
    /// Maximum number of deployments.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) limit: u32,
}

#[derive(Args, Debug)]
pub(crate) struct OpenArgs {
    /// The deployment. Default: the live one.
    #[arg(value_name = "ID", value_parser = parse_id)]
    pub(crate) deployment: Option<String>,
    /// The branch whose site is opened. Default: production.
    #[arg(long, value_name = "BRANCH", conflicts_with = "deployment", value_parser = parse_branch)]
    pub(crate) branch: Option<String>,
    /// Print the address, and do not open the browser.
    #[arg(long)]
    pub(crate) no_browser: bool,
}

#[derive(Args, Debug)]
pub(crate) struct RollbackArgs {
    /// The deployment. Default: the one before the live one.
    #[arg(value_name = "ID", value_parser = parse_id)]
    pub(crate) deployment: Option<String>,
    /// Return before the deployment is live.
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Args, Debug)]
pub(crate) struct PromoteArgs {
    /// The deployment of a preview.
    #[arg(value_name = "ID", value_parser = parse_id)]
    pub(crate) deployment: String,
    /// Return before the deployment is live.
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Args, Debug)]
pub(crate) struct PinArgs {
    /// The deployment. Default: the live or pinned one.
    #[arg(value_name = "ID", value_parser = parse_id)]
    pub(crate) deployment: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretsCommand {
    /// Set a secret, or all secrets of a file.
    ///
    /// The value is asked for without echo, or read from standard input if that is not a terminal.
    Set {
        /// The name: upper-case letters, digits and underscores.
        #[arg(value_name = "NAME", required_unless_present = "env_file")]
        name: Option<String>,
        /// Read the value from a file.
        #[arg(long, value_name = "FILE", requires = "name")]
        from_file: Option<PathBuf>,
        /// Set every NAME=VALUE line of a file, up to 100.
        #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "from_file"])]
        env_file: Option<PathBuf>,
        #[command(flatten)]
        scope: SecretScope,
    },
    /// List the names of the secrets.
    List {
        #[command(flatten)]
        scope: SecretScope,
    },
    /// Delete a secret from the platform.
    Delete {
        /// The name of the secret.
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        scope: SecretScope,
    },
}

#[derive(Args, Debug)]
pub(crate) struct SecretScope {
    /// The id of the worker that gets the secret. Default: the server chooses.
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    pub(crate) resource: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct FeaturesArgs {
    #[command(subcommand)]
    pub(crate) command: Option<FeaturesCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FeaturesCommand {
    /// List the features of the platform.
    List,
    /// Activate a feature on the platform.
    Activate {
        /// The id of the feature.
        #[arg(value_name = "FEATURE", value_parser = parse_new_feature)]
        feature: String,
        /// The version of the feature, for example 1.2.0.
        #[arg(value_name = "VERSION", value_parser = parse_feature)]
        feature_version: String,
        /// A file with the settings of the feature, as a JSON object.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Deactivate a feature of the platform.
    Deactivate {
        /// The id of the feature.
        #[arg(value_name = "FEATURE", value_parser = parse_feature)]
        feature: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DomainsCommand {
    /// Add a hostname that leads to the site.
    Add {
        /// The hostname, for example www.example.org.
        #[arg(value_name = "HOSTNAME", value_parser = parse_hostname)]
        hostname: String,
        /// Add a customer's domain that leads to this hostname of the platform. Default: the hostname leads to the site.
        #[arg(long, value_name = "HOSTNAME", value_parser = parse_hostname)]
        target: Option<String>,
    },
    /// List the hostnames of the platform and its customers.
    List,
    /// Print the DNS records that a hostname still needs. The exit code is 1 unless the hostname is served.
    Check {
        /// The hostname to look up.
        #[arg(value_name = "HOSTNAME", value_parser = parse_hostname)]
        hostname: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// List the jobs, newest first.
    List {
        /// Only jobs in this status: queued, running, waiting, completed or failed.
        #[arg(long, value_name = "STATUS", value_parser = parse_job_status)]
        status: Option<JobStatus>,
        /// Maximum number of jobs.
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
        limit: u32,
    },
    /// Print the events of a job until it has ended. The exit code is 1 if it failed.
    Watch {
        /// The id of the job.
        #[arg(value_name = "JOB", value_parser = parse_id)]
        job: String,
    },
    /// Retry a failed job. Operators only.
    Retry {
        /// The id of the job.
        #[arg(value_name = "JOB", value_parser = parse_id)]
        job: String,
    },
}

#[derive(Args, Debug)]
pub(crate) struct LogsArgs {
    /// Continue with new lines until interrupted.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only lines of this worker or site, by name.
    #[arg(long, value_name = "NAME", value_parser = parse_resource_name)]
    pub(crate) resource: Option<String>,
    /// Number of earlier lines.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) tail: u32,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StacksCommand {
    /// Activate a stack on the platform.
    Activate {
        /// The name of the stack template.
        #[arg(value_name = "STACK", value_parser = parse_stack)]
        stack: String,
        /// The version of the template. Default: the latest.
        #[arg(long = "stack-version", value_name = "VERSION", value_parser = parse_stack_version)]
        stack_version: Option<String>,
        /// The environment: dev, stg or prod. Default: prod.
        #[arg(long, value_name = "NAME", value_parser = parse_environment)]
        environment: Option<Environment>,
        /// The entity that gets the stack, by id. Default: the default tenant of the platform.
        #[arg(long, value_name = "ID", value_parser = parse_id)]
        entity: Option<String>,
        /// Print what would be created, and change nothing.
        #[arg(long)]
        dry_run: bool,
        /// Return as soon as the job is queued.
        #[arg(long)]
        no_wait: bool,
    },
}

fn parse_deployment_status(text: &str) -> Result<DeploymentStatus, String> {
    match DeploymentStatus::from(text.to_lowercase()) {
        DeploymentStatus::Other(_) => Err("it is no status of a deployment".to_owned()),
        status => Ok(status),
    }
}

fn parse_job_status(text: &str) -> Result<JobStatus, String> {
    match JobStatus::from(text.to_uppercase()) {
        JobStatus::Other(_) => Err("it is no status of a job".to_owned()),
        status => Ok(status),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn a_status_is_accepted_in_any_case() {
        assert_eq!(parse_job_status("failed"), Ok(JobStatus::Failed));
        assert_eq!(
            parse_deployment_status("ACTIVE"),
            Ok(DeploymentStatus::Active)
        );
        assert!(parse_job_status("late").is_err());
    }
}
