//! Sign-in with the device flow (RFC 8628), and sign-out.

use std::io::{self, IsTerminal};

use core_client::types::account::DeviceCodes;
use core_client::{Client, Credential, Error};

use super::account;
use crate::args::LoginArgs;
use crate::auth::token_store::StoredTokens;
use crate::config::profiles::Profile;
use crate::context::Context;
use crate::failure::{Failure, FailureKind, Result};
use crate::progress::Progress;
use crate::text::plain;

/// Signs a person in and stores the tokens in the profile.
pub(crate) async fn login(context: &Context, args: &LoginArgs) -> Result<()> {
    if context.credential().is_some() {
        return Err(
            Failure::usage("CORE_TOKEN is set and takes precedence over a sign-in.")
                .hint("Unset CORE_TOKEN, then run `core-cli login`."),
        );
    }
    warn_about_plain_http(context);
    let client = find_iam(context, args.iam_url.as_deref()).await?;
    let codes = client.request_device_code().await?;
    display_codes(context, &codes, args.no_browser);
    let progress = Progress::spinner(context.output, "waiting");
    progress.set_message("Waiting for your approval in the browser.");
    let outcome = client.wait_for_approval(&codes).await;
    progress.clear();
    let pair = outcome.map_err(explain_refusal)?;
    let tokens = StoredTokens::new(
        &context.api_url,
        client.iam_url(),
        &pair,
        context.clock.now(),
    );
    let store = context.token_store();
    let lock = store.lock()?;
    store.write(&tokens)?;
    drop(lock);
    let profile = Profile {
        api_url: Some(context.api_url.clone()),
        iam_url: Some(client.iam_url().to_owned()),
    };
    context
        .profiles
        .clone()
        .save(&context.config_folder, &context.profile_name, profile)?;
    account::whoami(context).await
}

/// Warns if the tokens would cross a network without encryption.
fn warn_about_plain_http(context: &Context) {
    if !core_client::is_protected(&context.api_url) {
        context.output.note(&format!(
            "warning: {} is not encrypted; others on the network can read your tokens.",
            context.api_url
        ));
    }
}

/// Returns a client for the IAM of the gateway: at the given address, that of the profile, or the one that the gateway
/// names.
async fn find_iam(context: &Context, given: Option<&str>) -> Result<Client> {
    if let Some(url) = given {
        return Ok(context.client_builder().iam_url(url).build()?);
    }
    let profile = context.profile();
    let of_profile = profile
        .iam_url
        .filter(|_| profile.api_url.as_ref() == Some(&context.api_url));
    if let Some(url) = of_profile {
        let client = context.client_builder().iam_url(url).build()?;
        // The address may have changed since the last sign-in.
        if client.get_authorization_server().await.is_ok() {
            return Ok(client);
        }
    }
    Ok(context.client_builder().discover_iam().await?.build()?)
}

fn display_codes(context: &Context, codes: &DeviceCodes, no_browser: bool) {
    let page = codes
        .verification_uri_complete
        .as_ref()
        .unwrap_or(&codes.verification_uri);
    let output = context.output;
    output.note(&format!("Open {}", plain(&codes.verification_uri)));
    output.note(&format!(
        "and enter the code {}",
        plain(codes.user_code.expose())
    ));
    let is_web_page = page.starts_with("https://") || page.starts_with("http://");
    if !no_browser
        && is_web_page
        && io::stderr().is_terminal()
        && open::that_detached(page).is_err()
    {
        output.note("The browser could not be opened; open the address yourself.");
    }
}

fn explain_refusal(error: Error) -> Failure {
    let what = match error.api().map(|error| error.code.as_str()) {
        Some("access_denied") => "The sign-in was denied in the browser.",
        Some("expired_token") => "The code expired before it was approved.",
        _ => return error.into(),
    };
    Failure::new(FailureKind::Auth, what).hint("Run `core-cli login` to get a new code.")
}

/// Ends the session on the server and deletes the tokens.
pub(crate) async fn logout(context: &Context) -> Result<()> {
    let store = context.token_store();
    let Some(tokens) = store.read()? else {
        context.output.note("You are not signed in.");
        return Ok(());
    };
    let outcome = end_session(context, &tokens).await;
    store.delete()?;
    match outcome {
        Ok(()) => {
            context.output.note(&format!("You are signed out of {}.", tokens.api_url));
            Ok(())
        }
        // The session had ended before.
        Err(failure) if failure.kind == FailureKind::Auth => {
            context.output.note("Your session had ended already.");
            Ok(())
        }
        Err(failure) => Err(Failure::other(format!(
            "The tokens are deleted from this machine, but the server did not end the session.\n{failure}"
        ))
        .hint(format!("End the session in the browser: {}/account/security", tokens.iam_url))),
    }
}

/// Ends the session. An expired access token is refreshed first, because the server identifies the session by it.
async fn end_session(context: &Context, tokens: &StoredTokens) -> Result<()> {
    let client = context.client_builder().iam_url(&tokens.iam_url).build()?;
    let access_token = if tokens.is_fresh(context.clock.now()) {
        tokens.access_token.clone()
    } else {
        match client.refresh_tokens(&tokens.refresh_token).await {
            Ok(pair) => pair.access_token,
            Err(error) if error.is_code("invalid_grant") => {
                return Err(Failure::new(FailureKind::Auth, "The session has ended."));
            }
            Err(error) => return Err(error.into()),
        }
    };
    let builder = context.client_builder().iam_url(&tokens.iam_url);
    let client = builder
        .token_source(Credential::Bearer(access_token))
        .build()?;
    Ok(client.sign_out().await?)
}
