//! The Stripe account of the configuration.

use core_suite::{STRIPE_API, Secret, StripeAccount};

use super::error::{ConfigError, option_error};
use super::options::Options;

/// Returns the account that charges invoices; `None` means the embedded provider.
///
/// # Errors
/// [`ConfigError`] names the option that is invalid, or that another option requires.
pub(super) fn account(options: &Options) -> Result<Option<StripeAccount>, ConfigError> {
    let webhook_secrets = options.stripe_webhook_secret.as_deref();
    let publishable_key = options.stripe_publishable_key.clone();
    let base_url = options.stripe_api_base_url.clone();
    let Some(secret_key) = options.stripe_secret_key.clone() else {
        if webhook_secrets.is_some() || publishable_key.is_some() || base_url.is_some() {
            return Err(option_error(
                "stripe_secret_key",
                "is required with other options of Stripe",
            ));
        }
        return Ok(None);
    };
    let webhook_secrets = webhook_secrets.into_iter().flat_map(|all| all.split(','));
    let account = StripeAccount {
        secret_key: Secret::new(secret_key),
        webhook_secrets: webhook_secrets
            .map(|secret| Secret::new(secret.trim()))
            .collect(),
        publishable_key,
        base_url: base_url.unwrap_or_else(|| STRIPE_API.to_owned()),
    };
    let option = |setting| match setting {
        "stripe.secret_key" => "stripe_secret_key",
        "stripe.webhook_secrets" => "stripe_webhook_secret",
        "stripe.publishable_key" => "stripe_publishable_key",
        _ => "stripe_api_base_url",
    };
    match account.check() {
        Ok(()) => Ok(Some(account)),
        Err(error) => Err(option_error(option(error.setting), error.problem)),
    }
}
