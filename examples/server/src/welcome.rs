//! What a person who started the server wants to know next.

use std::collections::BTreeMap;

use crate::config::{Config, Database};

/// The first things to do, as text for a terminal.
pub(crate) fn text(config: &Config, addresses: &BTreeMap<&'static str, String>) -> String {
    let kept = match &config.database {
        Database::Memory => "in memory; gone when the server ends".to_owned(),
        Database::Sqlite(path) => format!("in {}", path.display()),
        Database::Postgres(_) => "in PostgreSQL".to_owned(),
    };
    let mut text =
        format!("\nThe Platform Control API Suite is running; records are kept {kept}.\n");
    if config.smtp_url.is_none() {
        let outbox = config.data.join("outbox");
        text.push_str(&format!("Mails are written into {}.\n", outbox.display()));
    }
    let infrastructure = match &config.cloudflare {
        Some(account) => {
            let id = &account.account_id;
            format!("Infrastructure is made at Cloudflare, in the account {id}.")
        }
        None => workers(config),
    };
    text.push_str(&infrastructure);
    text.push_str("\n\n");
    for (name, url) in addresses {
        text.push_str(&format!("  {name:13} {url}\n"));
    }
    if let (Some(iam), Some(gateway)) = (addresses.get("iam"), addresses.get("gateway")) {
        text.push_str(&format!(
            "\nWhat to do next: sign up, and keep the token of the answer.\n\n  \
             curl -c cookies.txt -H 'content-type: application/json' {iam}/api/auth/sign-up/email \\\n    \
             -d '{{\"name\":\"Ada\",\"email\":\"ada@example.org\",\"password\":\"correct horse battery\"}}'\n  \
             curl -b cookies.txt -H 'origin: {iam}' -H 'content-type: application/json' {iam}/api/core/org-setup \\\n    \
             -d '{{\"name\":\"Analytical Engines\",\"slug\":\"engines\"}}'\n  \
             curl -H 'authorization: Bearer TOKEN' {gateway}/api/v1/platforms\n\n\
             Or watch the whole way to a live site:  cargo run --release -p core-tour\n"
        ));
    }
    if config.auth_api_key.is_none() {
        text.push_str("\nAUTH_API_KEY is not set: every request passes unauthenticated. For this machine only.\n");
    }
    text
}

/// Whether workers run, and what is to do if they do not.
pub(crate) fn workers(config: &Config) -> String {
    match &config.workerd {
        Some(workerd) => format!("Workers run with {}.", workerd.program().display()),
        None => "Workers are stored and do not run: workerd was not found (npm install workerd, or WORKERD_BIN)."
            .to_owned(),
    }
}
