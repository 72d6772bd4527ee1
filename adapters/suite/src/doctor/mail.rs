//! The check of the mail server.

#[cfg(feature = "smtp")]
use std::time::Instant;

use super::Finding;
use crate::SuiteBuilder;

impl SuiteBuilder {
    /// Signs in at the mail server as for a mail.
    #[cfg(feature = "smtp")]
    pub(super) async fn mail_finding(&self) -> Finding {
        let Some(text) = self.smtp.as_ref().filter(|_| self.mailer.is_none()) else {
            return self.no_mail_server();
        };
        let Ok(url) = text.parse::<core_smtp::SmtpUrl>() else {
            return Finding::failure("mail", "the URL of the mail server is invalid");
        };
        let server = format!("{}:{}", url.host(), url.port());
        let from = match self.settings.mail.mailbox() {
            Ok(from) => from,
            Err(error) => return Finding::failure("mail", error.to_string()),
        };
        let mailer = match core_smtp::SmtpMailer::new(url.clone(), from) {
            Ok(mailer) => mailer.with_timeout(super::CHECK_TIMEOUT),
            Err(error) => return Finding::failure("mail", format!("{server}: {error}")),
        };
        let began = Instant::now();
        match mailer.check().await {
            Ok(()) => {
                let login = match url.has_login() {
                    true => "the login",
                    false => "connections without a login",
                };
                let text = format!("{server} accepts {login} ({:.0?})", began.elapsed());
                Finding::fine("mail", text)
            }
            Err(error) => {
                let advice = error.advice();
                Finding::failure("mail", format!("{server}: {error}; {advice}"))
            }
        }
    }

    /// Returns the finding about the folder for mails.
    #[cfg(not(feature = "smtp"))]
    #[expect(clippy::unused_async, reason = "with the feature it connects")]
    pub(super) async fn mail_finding(&self) -> Finding {
        self.no_mail_server()
    }

    fn no_mail_server(&self) -> Finding {
        if self.mailer.is_some() {
            return Finding::fine("mail", "the mailer of the host program sends mails");
        }
        let text = "there is no mail server: mails are only files in the folder outbox";
        Finding::warning("mail", text)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use core_domain::testing::MockMailer;

    use super::*;
    use crate::doctor::Severity;

    #[tokio::test]
    async fn mails_that_are_only_files_are_a_warning() {
        let found = SuiteBuilder::default().mail_finding().await;
        assert_eq!(found.severity, Severity::Warning, "{found}");
        let builder = SuiteBuilder::default().mailer(Arc::new(MockMailer::new()));
        let found = builder.mail_finding().await;
        assert_eq!(found.severity, Severity::Fine, "{found}");
    }

    #[cfg(feature = "smtp")]
    #[tokio::test]
    async fn a_server_that_cannot_be_reached_is_a_failure_without_the_password() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = closed.local_addr().unwrap();
        drop(closed);
        let url = format!("smtp://ada:open-sesame@{address}?tls=none");
        let found = SuiteBuilder::default().smtp(url).mail_finding().await;
        assert_eq!(found.severity, Severity::Failure, "{found}");
        assert!(found.text.starts_with(&address.to_string()), "{found}");
        assert!(found.text.contains("firewall"), "{found}");
        assert!(!found.text.contains("sesame"), "{found}");
        let found = SuiteBuilder::default().smtp("sesame").mail_finding().await;
        assert_eq!(found.severity, Severity::Failure, "{found}");
        assert!(!found.text.contains("sesame"), "{found}");
    }
}
