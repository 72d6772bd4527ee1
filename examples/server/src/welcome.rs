//! The text that tells a person who started the server what to do next.

use std::collections::BTreeMap;

use crate::config::{Config, Database};

/// Returns the first steps as text for a terminal.
pub(crate) fn text(config: &Config, addresses: &BTreeMap<&'static str, String>) -> String {
    if config.options.is_gateway_only() {
        return gateway_only(addresses);
    }
    let kept = match &config.database {
        Database::Memory => "in memory, and are lost when the server ends".to_owned(),
        Database::Sqlite(path) => format!("in {}", path.display()),
        Database::Postgres { .. } => "in PostgreSQL".to_owned(),
    };
    let mut text =
        format!("\nThe Platform Control API Suite is running; records are stored {kept}.\n");
    if config.options.smtp_url.is_none() {
        let outbox = config.options.data.join("outbox");
        text.push_str(&format!("Mails are written to {}.\n", outbox.display()));
    }
    let infrastructure = match &config.cloudflare {
        Some(account) => {
            let id = &account.account_id;
            format!("Infrastructure is created at Cloudflare, in the account {id}.")
        }
        None => workers(config),
    };
    text.push_str(&infrastructure);
    text.push('\n');
    text.push_str(payments(config));
    text.push_str("\n\n");
    for (name, url) in addresses {
        text.push_str(&format!("  {name:13} {url}\n"));
    }
    if let (Some(iam), Some(gateway)) = (addresses.get("iam"), addresses.get("gateway")) {
        text.push_str(&format!(
            "\nNext steps: sign up, and use the token of the response as TOKEN below.\n\n  \
             curl -c cookies.txt -H 'content-type: application/json' {iam}/api/auth/sign-up/email \\\n    \
             -d '{{\"name\":\"Ada\",\"email\":\"ada@example.org\",\"password\":\"correct horse battery\"}}'\n  \
             curl -b cookies.txt -H 'origin: {iam}' -H 'content-type: application/json' {iam}/api/core/org-setup \\\n    \
             -d '{{\"name\":\"Analytical Engines\",\"slug\":\"engines\"}}'\n  \
             curl -H 'authorization: Bearer TOKEN' {gateway}/api/v1/platforms\n\n\
             Or watch the complete way to a live site:  cargo run --release -p core-tour\n"
        ));
    }
    if config.options.auth_api_key.is_none() {
        text.push_str("\nAUTH_API_KEY is not set: every request is accepted unauthenticated. Use this on a local machine only.\n");
    }
    text
}

/// Returns the text for a process that runs only the gateway.
fn gateway_only(addresses: &BTreeMap<&'static str, String>) -> String {
    let mut text =
        "\nThe gateway is running; every other service is in another process.\n\n".to_owned();
    if let Some(url) = addresses.get("gateway") {
        text.push_str(&format!("  {:13} {url}\n", "gateway"));
    }
    text
}

/// Returns whose money the charges of this server move.
pub(crate) fn payments(config: &Config) -> &'static str {
    match &config.stripe {
        Some(account) if account.is_live() => return "Invoices are charged at Stripe.",
        Some(_) => {
            return "Invoices are charged at Stripe in test mode: only test cards are accepted, and no money moves.";
        }
        None => {}
    }
    if config.options.settings.billing.allow_simulated_payments {
        return "Payments are simulated: only test cards are accepted, and no money moves.";
    }
    "There is no payment provider: requests that need a charge are refused (set ALLOW_SIMULATED_PAYMENTS to try billing)."
}

/// Returns whether workers run, and how to enable them if not.
pub(crate) fn workers(config: &Config) -> String {
    match &config.workerd {
        Some(workerd) => format!("Workers run with {}.", workerd.program().display()),
        None => "Workers are stored but do not run: workerd was not found (run npm install workerd, or set WORKERD_BIN)."
            .to_owned(),
    }
}
