//! Imports users from another installation.

mod reader;
mod row;

use std::io::{BufReader, Read};
use std::sync::Arc;

use core_domain::access::{OperatorScope, authorize_operator};
use core_domain::kernel::{Context, Email, Error, StoreError, UserId};
use core_domain::port::{Mode, PasswordHasher, Store, transact};
use core_domain::use_case::iam::user::{
    ImportOutcome, ImportedUser, KnownUsers, import, preview_import,
};
use tokio::sync::mpsc;

use crate::assemble::{Folder, hasher, open_options, secret};
use crate::{SuiteBuilder, SuiteError};

/// The number of users in one unit of work.
const BATCH: usize = 200;

/// The number of batches that are read ahead.
const MAX_BATCHES_AHEAD: usize = 2;

/// Maximum number of times a batch is tried when it conflicts with a concurrent sign-up.
const MAX_ATTEMPTS: u32 = 5;

/// The counts of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Users imported; in a dry run, users that would be imported.
    pub imported: u64,
    /// Users whose address or id already exists. They are left unchanged.
    pub existing: u64,
    /// The number of invalid rows.
    pub invalid: u64,
}

/// Why a row was not imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportProblem {
    /// The row is invalid.
    #[error("line {line}: {}", problems.join("; "))]
    Refused {
        /// The line at which the row starts, from 1.
        line: u64,
        /// Every error found in the row.
        problems: Vec<String>,
    },
    /// The address already belongs to a user.
    #[error("line {line}: {email} is taken")]
    EmailTaken {
        /// The line at which the row starts, from 1.
        line: u64,
        /// The e-mail address of the row.
        email: Email,
    },
    /// The id already belongs to another user.
    #[error("line {line}: the id {id} is taken")]
    IdTaken {
        /// The line at which the row starts, from 1.
        line: u64,
        /// The user id of the row.
        id: UserId,
    },
}

/// Why an import was aborted. Users imported before the error remain.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The store could not be opened.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// The file cannot be read.
    #[error("the file cannot be read")]
    Read(#[from] std::io::Error),
    /// The store failed.
    #[error("the users cannot be stored: {0:?}")]
    Store(#[from] Error),
}

/// The line at which a row starts, and the row or its errors.
type Row = (u64, Result<ImportedUser, Vec<String>>);

impl SuiteBuilder {
    /// Imports users from JSON: one object per line, or one array of objects. Each has `email` and any of `id`, `name`,
    /// `emailVerified`, `image`, `createdAt`, `passwordHash` (Argon2 as a PHC string, or scrypt as better-auth stores
    /// it). The source is read as a stream, and users are stored 200 at a time. A user whose address or id already
    /// exists is left unchanged, so a file can be imported again. With `dry_run` nothing is stored. The import opens
    /// the store itself: with SQLite no server may run at the same time.
    ///
    /// # Errors
    /// [`ImportError`] if the settings are invalid, or if the store or the source fails. Errors of rows are passed to `report`.
    pub async fn import_users(
        self,
        source: impl Read + Send + 'static,
        dry_run: bool,
        mut report: impl FnMut(ImportProblem) + Send,
    ) -> Result<ImportSummary, ImportError> {
        self.check()?;
        let folder = Folder::of(&self)?;
        let secret = secret(&self, &folder)?;
        let options = open_options(&self, &secret);
        let store = self.store.clone().open(options).await?;
        let cx = Context::system(Arc::clone(&self.entropy));
        let scope = authorize_operator(&cx)?;
        let mut import = Import {
            store,
            cx,
            scope,
            dry_run_users: dry_run.then(KnownUsers::default),
            summary: ImportSummary::default(),
        };
        let (batches, mut read) = mpsc::channel(MAX_BATCHES_AHEAD);
        let hasher = hasher(&self);
        let reading = tokio::task::spawn_blocking(move || send_batches(source, &*hasher, &batches));
        while let Some(batch) = read.recv().await {
            import.import_batch(batch, &mut report).await?;
        }
        reading.await.map_err(std::io::Error::other)??;
        Ok(import.summary)
    }
}

fn send_batches(
    source: impl Read,
    hasher: &dyn PasswordHasher,
    batches: &mpsc::Sender<Vec<Row>>,
) -> std::io::Result<()> {
    let mut batch: Vec<Row> = Vec::with_capacity(BATCH);
    reader::read(BufReader::new(source), &mut |line, row| {
        let row = row.map_err(|problem| vec![problem]);
        batch.push((line, row.and_then(|text| row::parse(text, hasher))));
        if batch.len() < BATCH {
            return true;
        }
        // A closed channel means that the import has failed.
        batches.blocking_send(std::mem::take(&mut batch)).is_ok()
    })?;
    if !batch.is_empty() {
        let _ = batches.blocking_send(batch);
    }
    Ok(())
}

struct Import {
    store: Arc<dyn Store>,
    cx: Context,
    scope: OperatorScope,
    /// In a dry run, the users that would have been imported so far.
    dry_run_users: Option<KnownUsers>,
    summary: ImportSummary,
}

impl Import {
    async fn import_batch(
        &mut self,
        batch: Vec<Row>,
        report: &mut (impl FnMut(ImportProblem) + Send),
    ) -> Result<(), Error> {
        let people = batch.iter().filter_map(|(_, row)| row.as_ref().ok());
        let people: Vec<ImportedUser> = people.cloned().collect();
        let mut outcomes = self.outcomes(&people).await?.into_iter();
        for (line, row) in batch {
            match row {
                Ok(person) => {
                    let outcome = outcomes.next();
                    self.count(line, person, outcome, report);
                }
                Err(problems) => {
                    self.summary.invalid += 1;
                    report(ImportProblem::Refused { line, problems });
                }
            }
        }
        Ok(())
    }

    fn count(
        &mut self,
        line: u64,
        person: ImportedUser,
        outcome: Option<ImportOutcome>,
        report: &mut impl FnMut(ImportProblem),
    ) {
        match (outcome, person.id) {
            (Some(ImportOutcome::EmailTaken), _) => {
                self.summary.existing += 1;
                let email = person.email;
                report(ImportProblem::EmailTaken { line, email });
            }
            (Some(ImportOutcome::IdTaken), Some(id)) => {
                self.summary.existing += 1;
                report(ImportProblem::IdTaken { line, id });
            }
            _ => self.summary.imported += 1,
        }
    }

    async fn outcomes(&mut self, people: &[ImportedUser]) -> Result<Vec<ImportOutcome>, Error> {
        if people.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(previewed) = &mut self.dry_run_users {
            let mut uow = self.store.begin(Mode::Read).await?;
            let outcomes = preview_import(&self.scope, uow.as_mut(), previewed, people).await;
            uow.rollback().await;
            return outcomes;
        }
        let mut tries = 1;
        loop {
            let imported = transact(self.store.as_ref(), |uow, _| {
                Box::pin(import(&self.cx, &self.scope, uow, people))
            });
            match imported.await {
                Err(Error::Store(StoreError::Conflict { .. })) if tries < MAX_ATTEMPTS => {
                    tries += 1
                }
                outcomes => return outcomes,
            }
        }
    }
}
