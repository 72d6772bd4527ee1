//! How a fake is set up.

use crate::limit::RateLimit;

/// How a fake is set up.
#[derive(Clone)]
pub struct Settings {
    /// The port on the loopback interface; 0 for any that is free.
    pub port: u16,
    /// The API token it accepts.
    pub token: String,
    /// The account's id, 32 hex digits.
    pub account_id: String,
    /// The name of the zone that exists from the start.
    pub zone: String,
    /// The account's subdomain of workers.dev, when it has registered one.
    pub workers_subdomain: Option<String>,
    /// The limit of requests.
    pub rate_limit: RateLimit,
    /// The `exp` of upload tokens, in seconds of Unix time. The fake's own clock is not the machine's: it is for clients
    /// that read it.
    pub upload_token_exp: u64,
    /// The `max_file_count_allowed` of upload tokens.
    pub max_pages_files: usize,
    /// How often a Pages deployment must be asked for until it ends.
    pub deployment_polls: usize,
    /// Subdomains of pages.dev that other accounts have: a project of such a name gets another one.
    pub taken_pages_subdomains: Vec<String>,
    /// Whether requests and answers are recorded as a whole, with the secrets in them.
    pub record_exchanges: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            port: 0,
            token: "fake-api-token".to_owned(),
            account_id: "023e105f4ecef8ad9ca31a8372d0c353".to_owned(),
            zone: "example.com".to_owned(),
            workers_subdomain: Some("fake-account".to_owned()),
            rate_limit: RateLimit::default(),
            // 2100-01-01
            upload_token_exp: 4_102_444_800,
            max_pages_files: 20_000,
            deployment_polls: 2,
            taken_pages_subdomains: Vec::new(),
            record_exchanges: false,
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Settings");
        shown
            .field("port", &self.port)
            .field("account_id", &self.account_id);
        shown.finish_non_exhaustive()
    }
}
