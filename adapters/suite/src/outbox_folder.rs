//! Mails as files, for installations without a mail server.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use core_domain::kernel::OutboxId;
use core_domain::port::{Cause, Mail, MailError, Mailbox, Mailer};
use core_smtp::mime_message;

use crate::outbox_retention::{OutboxRetention, PruneSchedule, TEMPORARY};

/// Writes every mail into a folder as an `.eml` file, which mail programs open. Only the owner can read the files,
/// because links in mails are secrets. Mails older than 7 days are deleted, within an hour of the next mail. The oldest
/// ones are deleted when there are 10,000.
#[derive(Clone, Debug)]
pub struct OutboxFolder {
    folder: PathBuf,
    from: Mailbox,
    retention: OutboxRetention,
    schedule: Arc<Mutex<PruneSchedule>>,
}

impl OutboxFolder {
    /// Creates a mailer for a folder. The folder is created with the first mail.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>, from: Mailbox) -> Self {
        Self {
            folder: folder.into(),
            from,
            retention: OutboxRetention::DEFAULT,
            schedule: Arc::default(),
        }
    }

    fn is_due(&self) -> bool {
        let schedule = self.schedule.lock();
        let mut schedule = schedule.unwrap_or_else(PoisonError::into_inner);
        schedule.is_due(self.retention, Instant::now())
    }
}

#[async_trait]
impl Mailer for OutboxFolder {
    async fn send(&self, id: &OutboxId, mail: &Mail) -> Result<(), MailError> {
        let message = mime_message(id, mail, &self.from)
            .map_err(|error| MailError::Permanent(Cause::new(error)))?;
        let folder = self.folder.clone();
        let name = format!("{id}.eml");
        let retention = self.retention;
        let due = self.is_due();
        let write = move || {
            let file = write(&folder, &name, &message)?;
            if due && let Err(error) = prune(retention, &folder, &file) {
                tracing::warn!(?error, "old mails could not be deleted");
            }
            Ok(file)
        };
        let written = tokio::task::spawn_blocking(write).await;
        let written = written.map_err(std::io::Error::other).flatten();
        let file = written.map_err(|error| MailError::Transient(Cause::new(error)))?;
        tracing::info!(to = %mail.to, subject = mail.subject, file = %file.display(), "a mail was written");
        Ok(())
    }
}

/// Deletes old mails. Their ages are relative to the modification time of the newest file, which has the same file
/// system's clock.
fn prune(retention: OutboxRetention, folder: &Path, newest: &Path) -> std::io::Result<()> {
    let now = std::fs::metadata(newest)?.modified()?;
    let removed = retention.prune(folder, now)?;
    if removed > 0 {
        tracing::info!(removed, "old mails were deleted");
    }
    Ok(())
}

/// Writes the file atomically, readable by its owner only.
fn write(folder: &Path, name: &str, message: &[u8]) -> std::io::Result<PathBuf> {
    create_private(folder)?;
    let mut temporary = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .tempfile_in(folder)?;
    temporary.write_all(message)?;
    temporary.as_file().sync_all()?;
    let file = folder.join(name);
    temporary.persist(&file).map_err(|error| error.error)?;
    Ok(file)
}

#[cfg(unix)]
fn create_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn create_private(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)
}

#[cfg(test)]
mod tests {
    use core_domain::kernel::Email;

    use super::*;

    fn mail() -> Mail {
        Mail {
            to: Email::parse("ada@example.org").unwrap(),
            subject: "Verify your address".to_owned(),
            text: "https://core.test/verify?token=secret".to_owned(),
            html: "<a href=\"https://core.test/verify?token=secret\">Verify</a>".to_owned(),
        }
    }

    #[tokio::test]
    async fn a_mail_that_is_sent_twice_is_one_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = folder.path().join("outbox");
        let from: Mailbox = "Core <no-reply@core.test>".parse().unwrap();
        let mailer = OutboxFolder::new(&outbox, from.clone());
        let id = OutboxId::parse("019a5b1e-7c20-7d3e-9b4a-5f6c7d8e9f01").unwrap();
        for _ in 0..2 {
            mailer.send(&id, &mail()).await.unwrap();
        }
        let entries: Vec<_> = std::fs::read_dir(&outbox).unwrap().collect();
        assert_eq!(entries.len(), 1);
        let entry = entries.into_iter().next().unwrap().unwrap();
        let name = "019a5b1e-7c20-7d3e-9b4a-5f6c7d8e9f01.eml";
        assert_eq!(entry.file_name(), name);
        let text = std::fs::read(entry.path()).unwrap();
        assert_eq!(text, mime_message(&id, &mail(), &from).unwrap());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode(&entry.path()) & 0o777, 0o600);
            assert_eq!(mode(&outbox) & 0o777, 0o700);
        }
    }

    #[tokio::test]
    async fn a_folder_never_exceeds_its_maximum_and_keeps_the_newest_mails() {
        for limit in [1, 2, 3, 5, 8] {
            let folder = tempfile::tempdir().unwrap();
            let from = "no-reply@core.test".parse().unwrap();
            let mut mailer = OutboxFolder::new(folder.path(), from);
            mailer.retention.files = limit;
            for n in 0..5 * limit {
                let id = OutboxId::parse(&format!("mail-{n:02}")).unwrap();
                mailer.send(&id, &mail()).await.unwrap();
                let files = std::fs::read_dir(folder.path()).unwrap().count();
                assert!(files <= limit, "{files} files of {limit}");
                assert!(folder.path().join(format!("{id}.eml")).exists());
            }
        }
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_written_is_a_transient_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("outbox");
        std::fs::write(&file, "in the way").unwrap();
        let mailer = OutboxFolder::new(&file, "no-reply@core.test".parse().unwrap());
        let refused = mailer.send(&OutboxId::parse("id").unwrap(), &mail()).await;
        assert!(matches!(refused, Err(MailError::Transient(_))));
    }
}
