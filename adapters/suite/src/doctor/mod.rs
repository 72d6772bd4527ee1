//! Checks of the surroundings of a suite: the database, the clock, the data folder, uploads, mail, name servers, Redis,
//! payments, infrastructure, traces and other services.
//!
//! [`SuiteBuilder::diagnose`] changes no record and no setting, so it can run beside a server. It writes a test object
//! to a bucket and a temporary file to the data folder, and removes both.

mod database;
mod finding;
mod folder;
mod infrastructure;
mod mail;
mod name_servers;
mod payments;
mod redis;
mod services;
mod traces;
mod uploads;

use std::time::Duration;

use core_domain::port::Cause;

use crate::SuiteBuilder;

pub use finding::{Finding, Severity};
pub use services::check_service;

/// Maximum time for a connection to another server and its response.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

impl SuiteBuilder {
    /// Checks the settings and the surroundings of the suite, and returns a finding for each subject. A server with the
    /// same settings may be running. Writes a test object to a bucket and a temporary file to the data folder, and
    /// removes both. Nothing else is changed.
    pub async fn diagnose(&self) -> Vec<Finding> {
        let mut found = vec![self.settings_finding()];
        // The times of the database and the disk are measured before the other checks, which run at the same time.
        found.extend(Box::pin(self.all_database_findings()).await);
        if let Some(folder) = &self.data_folder {
            found.extend(folder::folder_findings(folder));
        }
        let (uploads, mail, name_servers, redis, payments, infrastructure, traces) = tokio::join!(
            Box::pin(self.upload_finding()),
            Box::pin(self.mail_finding()),
            Box::pin(self.name_server_findings()),
            Box::pin(self.redis_finding()),
            Box::pin(self.payment_finding()),
            Box::pin(self.infrastructure_finding()),
            Box::pin(self.trace_finding()),
        );
        found.extend(uploads);
        found.push(mail);
        found.extend(name_servers);
        found.extend(redis);
        found.extend(payments);
        found.push(infrastructure);
        found.extend(traces);
        found
    }

    fn settings_finding(&self) -> Finding {
        let subject = "settings";
        if let Err(error) = self.check() {
            return Finding::failure(subject, Cause::new(error).to_string());
        }
        match self.contradictions().as_slice() {
            [] => Finding::fine(subject, "valid"),
            found => {
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                Finding::warning(subject, found.join("; "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_setting_is_a_failure_and_a_contradiction_a_warning() {
        let fine = SuiteBuilder::default().settings_finding();
        assert_eq!(fine.severity, Severity::Fine, "{fine}");
        let invalid = SuiteBuilder::default().mail_from("Core");
        let invalid = invalid.settings_finding();
        assert_eq!(invalid.severity, Severity::Failure, "{invalid}");
        assert!(invalid.text.contains("mail.sender"), "{invalid}");
        let contradictory = SuiteBuilder::default().settings(|settings| {
            settings.webhooks.concurrency = 3;
            settings.webhooks.concurrency_per_webhook = 4;
        });
        let contradictory = contradictory.settings_finding();
        assert_eq!(contradictory.severity, Severity::Warning, "{contradictory}");
        assert!(
            contradictory.text.contains("concurrency_per_webhook"),
            "{contradictory}"
        );
    }
}
