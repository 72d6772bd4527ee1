//! Opens the versions of the plans without a suite.

use core_domain::port::Mode;
use core_domain::use_case::billing::plan;

use crate::assemble::{Folder, billing, open_options, plan_error, secret};
use crate::payments::PaymentProviders;
use crate::plans::Plans;
use crate::secret::InstallationSecret;
use crate::{SuiteBuilder, SuiteError};

impl SuiteBuilder {
    /// Opens the versions of the plans without a suite. Mails are sent by the servers of the same database. Another process
    /// may use a Postgres database at the same time, but not a SQLite file.
    ///
    /// # Errors
    /// [`SuiteError`] if a setting is invalid or the database cannot be opened.
    pub async fn open_plans(self) -> Result<Plans, SuiteError> {
        self.check()?;
        let folder = Folder::of(&self)?;
        let secret = secret(&self, &folder)?;
        let options = open_options(&self, &secret);
        let store = self.store.clone().open(options).await?;
        let payments = PaymentProviders::of(&self, &store)?;
        let billing = billing(&self, &store, payments.background, &secret).await?;
        Ok(Plans::new(store, billing, self.entropy))
    }

    /// Compares the configured plans with their versions in the database, which is only read. A server may be using it.
    ///
    /// # Errors
    /// - [`SuiteError::Setting`] if the terms of a plan have changed under the same version.
    /// - Another [`SuiteError`] if the database cannot be read, for example because it does not exist yet.
    pub async fn compare_plans(self) -> Result<(), SuiteError> {
        self.check()?;
        let plans = self.settings.billing.catalog()?;
        // Cursors do not leave this process, so any key will do.
        let secret = InstallationSecret::generate(self.entropy.as_ref());
        let options = open_options(&self, &secret);
        let store = self.store.open_read_only(options).await?;
        let mut uow = store.begin(Mode::Read).await?;
        let compared = plan::check_versions(uow.as_mut(), &plans).await;
        uow.rollback().await;
        compared.map_err(plan_error)
    }
}
