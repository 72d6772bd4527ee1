//! Opens the journal of billing without a suite.

use crate::accounting::Accounting;
use crate::assemble::open_options;
use crate::secret::InstallationSecret;
use crate::{SuiteBuilder, SuiteError};

impl SuiteBuilder {
    /// Opens the store for reading, without a suite. A server may be using the same database, also a SQLite file. Nothing
    /// is created: the database must exist and must have the schema of this version. A store in memory is empty, so use
    /// [`Suite::accounting`](crate::Suite::accounting) there.
    ///
    /// # Errors
    /// [`SuiteError`] if a setting is invalid or the database cannot be opened.
    pub async fn open_accounting(self) -> Result<Accounting, SuiteError> {
        self.check()?;
        // Cursors do not leave this process, so any key will do.
        let secret = InstallationSecret::generate(self.entropy.as_ref());
        let options = open_options(&self, &secret);
        let store = self.store.open_read_only(options).await?;
        Ok(Accounting::new(store, self.entropy))
    }
}
