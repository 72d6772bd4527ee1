//! The settings of a fake.

use crate::limit::RateLimit;

/// The settings of a fake.
#[derive(Clone)]
pub struct Settings {
    /// The port on the loopback interface; 0 selects a free port.
    pub port: u16,
    /// The API token that the fake accepts.
    pub token: String,
    /// The id of the account: 32 hexadecimal digits.
    pub account_id: String,
    /// The name of the initial zone.
    pub zone: String,
    /// The account's workers.dev subdomain; `None` if it has none.
    pub workers_subdomain: Option<String>,
    /// The rate limit of requests.
    pub rate_limit: RateLimit,
    /// The `exp` claim of upload tokens, in Unix seconds. Clients compare it with their own clock, which differs from
    /// the clock of the fake.
    pub upload_token_exp: u64,
    /// The `max_file_count_allowed` claim of upload tokens.
    pub max_pages_files: usize,
    /// Number of polls after which a Pages deployment ends.
    pub deployment_polls: usize,
    /// Subdomains of pages.dev that belong to other accounts. A project with such a name gets another subdomain.
    pub taken_pages_subdomains: Vec<String>,
    /// If `true`, complete requests and responses are recorded, including secrets.
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
