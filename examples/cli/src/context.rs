//! What a command works with: its settings, its client, its platform.

use std::path::PathBuf;
use std::sync::Arc;

use core_client::{Client, ClientBuilder, Clock, Credential, PageQuery, SystemClock};

use crate::args::{GlobalArgs, TokenOption};
use crate::auth::session::SessionSource;
use crate::auth::token_store::TokenStore;
use crate::config::folder::config_folder;
use crate::config::profiles::{DEFAULT_PROFILE, Profile, Profiles};
use crate::config::project::Project;
use crate::failure::{Failure, FailureKind, Result};
use crate::output::Output;

/// The address of a gateway on this machine.
const DEFAULT_API_URL: &str = "http://127.0.0.1:8080";

/// The text that identifies this program in the server's logs.
const USER_AGENT: &str = concat!("core-cli/", env!("CARGO_PKG_VERSION"));

/// The length of the ids of platforms.
const ID_LENGTH: usize = 36;

/// The settings of a command.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) output: Output,
    /// True if every question is answered with yes.
    pub(crate) yes: bool,
    pub(crate) config_folder: PathBuf,
    pub(crate) profiles: Profiles,
    pub(crate) profile_name: String,
    /// The address of the gateway, without a slash at the end.
    pub(crate) api_url: String,
    /// The settings of the site; `None` without a `core.toml`.
    pub(crate) project: Option<Project>,
    pub(crate) clock: Arc<dyn Clock>,
    platform: Option<String>,
    credential: Option<Credential>,
    /// True if nothing but a profile that does not exist tells the address of the gateway.
    is_unknown_profile: bool,
}

/// Returns the credential of `CORE_TOKEN`.
fn credential(token: Option<TokenOption>) -> Result<Option<Credential>> {
    match token {
        None | Some(TokenOption::Absent) => Ok(None),
        Some(TokenOption::Credential(credential)) => Ok(Some(credential)),
        Some(TokenOption::Invalid) => Err(Failure::usage(
            "CORE_TOKEN contains spaces or other characters that no token has.",
        )
        .hint("Copy the API key or token again, in one line.")),
    }
}

impl Context {
    /// Resolves the settings: flags and environment first, then `core.toml`, then the profile.
    pub(crate) fn new(args: GlobalArgs, output: Output) -> Result<Self> {
        let folder = std::env::current_dir()
            .map_err(|error| Failure::io("open the present folder", &error))?;
        let project = Project::find(&folder)?;
        let of_project = |get: fn(&Project) -> Option<String>| project.as_ref().and_then(get);
        let profile_name = args
            .profile
            .or_else(|| of_project(|project| project.profile.clone()));
        let profile_name = profile_name.unwrap_or_else(|| DEFAULT_PROFILE.to_owned());
        let config_folder = config_folder()?;
        let profiles = Profiles::read(&config_folder)?;
        let api_url = args
            .api_url
            .or_else(|| of_project(|project| project.api_url.clone()));
        let is_unknown_profile =
            api_url.is_none() && profile_name != DEFAULT_PROFILE && !profiles.has(&profile_name);
        let api_url = api_url.or_else(|| profiles.get(&profile_name).api_url);
        let api_url = api_url.unwrap_or_else(|| DEFAULT_API_URL.to_owned());
        Ok(Self {
            output,
            yes: args.yes,
            config_folder,
            profiles,
            profile_name,
            api_url: api_url.trim_end_matches('/').to_owned(),
            platform: args
                .platform
                .or_else(|| of_project(|project| project.platform.clone())),
            project,
            clock: Arc::new(SystemClock),
            credential: credential(args.token)?,
            is_unknown_profile,
        })
    }

    /// Returns the credential of `CORE_TOKEN`; `None` if the command uses the sign-in.
    pub(crate) fn credential(&self) -> Option<&Credential> {
        self.credential.as_ref()
    }

    /// Returns the profile.
    pub(crate) fn profile(&self) -> Profile {
        self.profiles.get(&self.profile_name)
    }

    /// Returns the store of the profile's tokens.
    pub(crate) fn token_store(&self) -> TokenStore {
        TokenStore::new(&self.config_folder, &self.profile_name)
    }

    /// Returns the settings of a client without credential.
    pub(crate) fn client_builder(&self) -> ClientBuilder {
        Client::builder(&self.api_url).user_agent(USER_AGENT)
    }

    /// Returns a client with the credential of `CORE_TOKEN` or of the sign-in.
    pub(crate) fn client(&self) -> Result<Client> {
        if self.is_unknown_profile {
            let name = &self.profile_name;
            return Err(
                Failure::usage(format!("There is no profile {name}.")).hint(format!(
                    "Create it: core-cli login --profile {name} --api-url URL"
                )),
            );
        }
        let mut builder = self.client_builder();
        if let Some(credential) = &self.credential {
            return Ok(builder.token_source(credential.clone()).build()?);
        }
        let tokens = self
            .token_store()
            .read()?
            .filter(|tokens| tokens.api_url == self.api_url);
        let tokens = tokens.ok_or_else(|| Failure::signed_out(&self.api_url))?;
        let source = SessionSource::new(
            self.token_store(),
            Arc::clone(&self.clock),
            self.api_url.clone(),
        );
        builder = builder.iam_url(tokens.iam_url).token_source(source);
        Ok(builder.build()?)
    }

    /// Returns the branch at the server: `production` for the production branch of `core.toml`.
    pub(crate) fn branch(&self, branch: Option<&str>) -> String {
        let no_project = Project::default();
        self.project.as_ref().unwrap_or(&no_project).branch(branch)
    }

    /// Returns the id of the platform: that of `--platform` or `core.toml`, or the only one of the caller.
    pub(crate) async fn platform(&self, client: &Client) -> Result<String> {
        match &self.platform {
            Some(platform) => find_platform(client, platform).await,
            None => only_platform(client).await,
        }
    }
}

/// Returns the id of a platform by its id or slug.
pub(crate) async fn find_platform(client: &Client, platform: &str) -> Result<String> {
    if platform.len() == ID_LENGTH && platform.bytes().filter(|byte| *byte == b'-').count() == 4 {
        return Ok(platform.to_owned());
    }
    let mut query = PageQuery {
        limit: Some(100),
        cursor: None,
    };
    loop {
        let page = match client.list_platforms(&query).await {
            Ok(page) => page,
            Err(error) if error.status() == Some(403) => {
                return Err(Failure::from(error).hint(format!(
                    "An API key without the permission platform:read cannot look up {platform:?}; pass the id of the platform.",
                )));
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(found) = page
            .data
            .iter()
            .find(|found| found.slug == platform || found.id == platform)
        {
            return Ok(found.id.clone());
        }
        if page.cursor.is_none() {
            let what = format!("There is no platform {platform:?}.");
            return Err(Failure::new(FailureKind::NotFound, what)
                .hint("`core-cli platforms` lists your platforms."));
        }
        query.cursor = page.cursor;
    }
}

async fn only_platform(client: &Client) -> Result<String> {
    let unnamed = || {
        Failure::usage("The platform is not named.")
            .hint("Pass --platform, or run `core-cli link` to choose it for this folder.")
    };
    let page = match client
        .list_platforms(&PageQuery {
            limit: Some(2),
            cursor: None,
        })
        .await
    {
        Ok(page) => page,
        Err(error) if error.status() == Some(403) => return Err(unnamed()),
        Err(error) => return Err(error.into()),
    };
    match page.data.as_slice() {
        [only] => Ok(only.id.clone()),
        [] => Err(Failure::new(FailureKind::NotFound, "You have no platform.")
            .hint("Set up an organization in the browser, at the address of IAM.")),
        _ => Err(unnamed()),
    }
}
