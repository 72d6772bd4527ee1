//! Chooses the mailer: the one set on the builder, an SMTP server, or a folder.

use std::path::Path;
use std::sync::Arc;

use core_domain::port::Mailer;
use core_http::gateway::ConfigError;

use crate::{OutboxFolder, SuiteBuilder};

/// Returns the mailer that was chosen.
pub(crate) fn mailer(
    builder: &SuiteBuilder,
    folder: &Path,
) -> Result<Arc<dyn Mailer>, ConfigError> {
    if let Some(mailer) = &builder.mailer {
        return Ok(Arc::clone(mailer));
    }
    #[cfg(feature = "smtp")]
    if let Some(mailer) = smtp(builder)? {
        return Ok(Arc::new(mailer));
    }
    let from = builder.settings.mail.mailbox()?;
    Ok(Arc::new(OutboxFolder::new(folder.join("outbox"), from)))
}

/// Checks that the chosen mailer can be created.
#[cfg(feature = "smtp")]
pub(crate) fn check_mailer(builder: &SuiteBuilder) -> Result<(), ConfigError> {
    smtp(builder).map(drop)
}

/// Checks that the chosen mailer can be created.
#[cfg(not(feature = "smtp"))]
pub(crate) fn check_mailer(builder: &SuiteBuilder) -> Result<(), ConfigError> {
    builder.settings.mail.mailbox().map(drop)
}

#[cfg(feature = "smtp")]
fn smtp(builder: &SuiteBuilder) -> Result<Option<core_smtp::SmtpMailer>, ConfigError> {
    let refused = |setting, problem: String| ConfigError { setting, problem };
    let Some(url) = &builder.smtp else {
        return Ok(None);
    };
    let from = builder.settings.mail.mailbox()?;
    if from.domain().ends_with(".invalid") {
        let problem = "must be an existing address when mail is sent through a server";
        return Err(refused("mail.sender", problem.to_owned()));
    }
    let url = url.parse::<core_smtp::SmtpUrl>();
    let url = url.map_err(|error| refused("smtp", error.to_string()))?;
    let mailer = core_smtp::SmtpMailer::new(url, from);
    let mailer = mailer.map_err(|error| refused("smtp", error.to_string()))?;
    Ok(Some(mailer.with_timeout(builder.settings.mail.timeout)))
}

#[cfg(test)]
mod tests {
    use core_domain::kernel::{Cipher, Email, OutboxId, Timestamp};
    use core_domain::port::{Mail, Store, transact};
    use core_domain::shared::{MAIL_TOPIC, OutboxMessage};
    use core_domain::testing::{ManualClock, MockMailer, RecordKey, SeededEntropy};
    use core_storage::memory::{MemoryConfig, open};
    use serde_json::json;

    use super::*;
    use crate::Suite;
    use crate::secret::InstallationSecret;

    const SECRET: [u8; 32] = [7; 32];

    /// Returns a store with one queued mail, encrypted as a suite with `SECRET` does it.
    async fn store_with_mail() -> (Arc<dyn Store>, OutboxId) {
        let now = Timestamp::from_seconds(1_800_000_000);
        let entropy = Arc::new(SeededEntropy::new(1));
        let store = open(MemoryConfig {
            clock: Arc::new(ManualClock::at(now)),
            cursor_key: [1; 32].into(),
        });
        let mail = Mail {
            to: Email::parse("ada@example.org").unwrap(),
            subject: "Hello".to_owned(),
            text: "Hello, Ada".to_owned(),
            html: "<p>Hello, Ada</p>".to_owned(),
        };
        let id = OutboxId::generate(now, entropy.as_ref());
        let key = InstallationSecret::new(SECRET).key("answers");
        let text = serde_json::to_string(&mail).unwrap();
        let sealed = Cipher::new(key, entropy).seal(id.as_str(), &text).unwrap();
        let message = &OutboxMessage {
            id: id.clone(),
            topic: MAIL_TOPIC.to_owned(),
            payload: json!({ "sealed": sealed }),
            attempts: 0,
            run_at: now,
            created_at: now,
        };
        let queued = transact(store.as_ref(), |uow, _| {
            Box::pin(async move {
                let repositories = uow.repositories(RecordKey::for_tests());
                repositories
                    .outbox_messages()
                    .insert(message.clone())
                    .await?;
                Ok(())
            })
        });
        queued.await.unwrap();
        (store, id)
    }

    #[tokio::test]
    async fn a_suite_writes_its_mails_into_its_data_folder() {
        let (store, id) = store_with_mail().await;
        let folder = tempfile::tempdir().unwrap();
        let builder = Suite::builder().store(store).data_folder(folder.path());
        let builder = builder.mail_from("Core <hello@core.test>");
        let suite = builder.secret(SECRET).build().await.unwrap();
        let file = folder.path().join("outbox").join(format!("{id}.eml"));
        while !file.exists() {
            tokio::task::yield_now().await;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            text.starts_with("From: Core <hello@core.test>\r\n"),
            "{text}"
        );
        suite.shutdown().await;
    }

    #[tokio::test]
    async fn a_suite_gives_its_mails_to_the_mailer_it_was_given() {
        let (store, id) = store_with_mail().await;
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let mut mailer = MockMailer::new();
        mailer.expect_send().once().returning(move |id, mail| {
            told.send((id.clone(), mail.to.to_string())).unwrap();
            Ok(())
        });
        let builder = Suite::builder().store(store).mailer(Arc::new(mailer));
        let suite = builder.secret(SECRET).build().await.unwrap();
        assert_eq!(heard.recv().await, Some((id, "ada@example.org".to_owned())));
        suite.shutdown().await;
    }

    #[cfg(feature = "smtp")]
    #[test]
    fn a_mail_server_needs_a_url_and_a_sender_that_exists() {
        let setting = |url: &str, from: Option<&str>| {
            let builder = Suite::builder().smtp(url);
            let builder = match from {
                Some(from) => builder.mail_from(from),
                None => builder,
            };
            match builder.check() {
                Ok(()) => None,
                Err(crate::SuiteError::Setting(error)) => Some(error.setting),
                Err(error) => panic!("{error}"),
            }
        };
        let url = "smtp://mail.example.org";
        let from = Some("Core <hello@core.test>");
        assert_eq!(setting(url, from), None);
        assert_eq!(setting(url, None), Some("mail.sender"));
        assert_eq!(setting(url, Some("Core")), Some("mail.sender"));
        assert_eq!(setting("mail.example.org", from), Some("smtp"));
        let no_file = "smtp://mail.example.org?ca=/nowhere/ca.pem";
        assert_eq!(setting(no_file, from), Some("smtp"));
    }
}
