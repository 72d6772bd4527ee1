//! The Cloudflare account of the configuration.

use core_suite::{CLOUDFLARE_API, CloudflareAccount, Secret};

use super::error::{ConfigError, option_error};
use super::options::Options;

/// Returns the account in which infrastructure is created; `None` means this machine.
///
/// # Errors
/// [`ConfigError`] names the option that is invalid, or that another option requires.
pub(super) fn account(options: &Options) -> Result<Option<CloudflareAccount>, ConfigError> {
    let base_url = options.cloudflare_api_base_url.clone();
    let token = options.cloudflare_api_token.clone();
    let account_id = options.cloudflare_account_id.clone();
    let account = match (token, account_id) {
        (Some(token), Some(account_id)) => CloudflareAccount {
            token: Secret::new(token),
            account_id,
            base_url: base_url.unwrap_or_else(|| CLOUDFLARE_API.to_owned()),
        },
        (Some(_), None) => {
            return Err(option_error(
                "cloudflare_account_id",
                "is required with a token",
            ));
        }
        (None, None) if base_url.is_none() => return Ok(None),
        (None, _) => {
            return Err(option_error(
                "cloudflare_api_token",
                "is required with an account",
            ));
        }
    };
    let option = |setting| match setting {
        "cloudflare.token" => "cloudflare_api_token",
        "cloudflare.account_id" => "cloudflare_account_id",
        _ => "cloudflare_api_base_url",
    };
    match account.check() {
        Ok(()) => Ok(Some(account)),
        Err(error) => Err(option_error(option(error.setting), error.problem)),
    }
}
