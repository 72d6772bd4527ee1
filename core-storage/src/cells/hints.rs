//! What a filter tells about the cells of rows, if it does not name their platform.
//!
//! Without a hint, a query goes to all cells. With one, it needs only the cells that can have matching rows, so it is answered
//! while other cells cannot be reached. Home is always asked as well: a process without cells may have written rows there.

use std::collections::BTreeSet;
use std::sync::Arc;

use core_domain::billing::{Customer, Subscription};
use core_domain::kernel::{StoreError, TextValue};
use core_domain::provisioning::JobKey;

use super::config::HOME;
use super::directory::ORGANIZATION;
use super::route::CellUnit;
use super::unique_values::{self, Holder};
use crate::filter::Filter;
use crate::query::Select;
use crate::table::{PLATFORM, Table};
use crate::tabular::Tabular;
use crate::value::{ReadRow, Value};

/// How a column that does not place the rows of its table tells their cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    /// The row belongs to the platform whose id begins the text.
    Prefix,
    /// The column is the idempotency key of a job, see [`JobKey`].
    JobKey,
    /// The row belongs to the platform of the subscription with this id.
    Subscription,
    /// The row belongs to a platform that the customer with this id pays for.
    Customer,
    /// The row is a platform of the organization.
    Organization,
}

/// Returns the hint that a column gives.
fn hint_of(table: &Table, column: &str) -> Option<Hint> {
    match (table.name, column) {
        ("usage_periods" | "usage_totals" | "usage_alerts", "id") => Some(Hint::Prefix),
        ("usage_periods", "subscription_id") => Some(Hint::Subscription),
        ("usage_periods", "customer_id") => Some(Hint::Customer),
        ("jobs", "idempotency_key") => Some(Hint::JobKey),
        ("platforms", ORGANIZATION) => Some(Hint::Organization),
        _ => None,
    }
}

/// What the row belongs to, as its text says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    /// A platform.
    Platform(String),
    /// No platform: the row is at home.
    Home,
}

/// Returns the platform at the beginning of the id of usage. No platform's id contains a separator.
fn platform_before_separator(id: &str) -> Option<Owner> {
    let (platform, _) = id.split_once([':', '/'])?;
    Some(Owner::Platform(platform.to_owned()))
}

/// Returns the platform of the job with this key. Earlier servers stored keys without a platform, before there were cells.
fn platform_of_job(key: &str) -> Option<Owner> {
    let platform = JobKey::from_text(key)?.platform().map(str::to_owned);
    Some(platform.map_or(Owner::Home, Owner::Platform))
}

impl CellUnit {
    /// Returns the cells of the rows that match, if the filter has a hint about them.
    pub(super) async fn cells_by_hint(
        &mut self,
        table: &'static Table,
        filter: &Filter,
    ) -> Result<Option<BTreeSet<usize>>, StoreError> {
        if let Some(id) = unique_values::id_in(table, filter) {
            return self.cells_of_holder(&id).await;
        }
        let hinting = |column| Some((hint_of(table, column)?, filter.values_of(column)?));
        let mut columns = table.columns.iter().map(|column| column.name);
        let Some((hint, values)) = columns.find_map(hinting) else {
            return Ok(None);
        };
        match hint {
            Hint::Prefix => self.cells_of_texts(values, platform_before_separator).await,
            Hint::JobKey => self.cells_of_texts(values, platform_of_job).await,
            Hint::Subscription => {
                let with_id = Filter::In(Subscription::TABLE.key(), values.to_vec());
                let platforms = self.platforms_in(Subscription::TABLE, with_id).await?;
                self.cells_of_platforms(platforms).await.map(Some)
            }
            Hint::Customer => {
                let with_id = Filter::In(Customer::TABLE.key(), values.to_vec());
                let mut platforms = self.platforms_in(Customer::TABLE, with_id).await?;
                let of_customer = Filter::In("customer_id", values.to_vec());
                platforms.extend(self.platforms_in(Subscription::TABLE, of_customer).await?);
                self.cells_of_platforms(platforms).await.map(Some)
            }
            Hint::Organization => self.cells_of_organizations(values).await.map(Some),
        }
    }

    /// Returns the cell of the row that has a value that is unique over all cells.
    async fn cells_of_holder(&mut self, id: &str) -> Result<Option<BTreeSet<usize>>, StoreError> {
        let platforms = match unique_values::holder(self.tx(HOME).await?, id).await? {
            Holder::Unknown => return Ok(None),
            Holder::None => Vec::new(),
            Holder::Platform(platform) => vec![platform],
        };
        self.cells_of_platforms(platforms).await.map(Some)
    }

    /// Returns the cells of the platforms that the texts name; `None` if one of them cannot be read.
    async fn cells_of_texts(
        &mut self,
        texts: &[Value],
        read: fn(&str) -> Option<Owner>,
    ) -> Result<Option<BTreeSet<usize>>, StoreError> {
        let named = texts.iter().map(|text| read(text.as_text()?));
        let Some(named) = named.collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let platforms = named.into_iter().filter_map(|owner| match owner {
            Owner::Platform(platform) => Some(platform),
            Owner::Home => None,
        });
        self.cells_of_platforms(platforms.collect()).await.map(Some)
    }

    /// Returns the platforms that these rows of a table of the home cell name.
    async fn platforms_in(
        &mut self,
        table: &'static Table,
        filter: Filter,
    ) -> Result<Vec<String>, StoreError> {
        let rows = Select::of(table).filter(filter.and(Filter::NotNull(PLATFORM)));
        let at = table.column_index(PLATFORM).unwrap_or_default();
        let mut platforms = Vec::new();
        let mut visit = |row: &dyn ReadRow| {
            platforms.extend(row.read(at)?.as_text().map(str::to_owned));
            Ok(())
        };
        self.tx(HOME).await?.select(&rows, &mut visit).await?;
        Ok(platforms)
    }

    async fn cells_of_organizations(
        &mut self,
        organizations: &[Value],
    ) -> Result<BTreeSet<usize>, StoreError> {
        let cells = Arc::clone(&self.cells);
        let home = self.tx(HOME).await?;
        let found = cells.directory.cells_of_organizations(home, organizations);
        found.await
    }
}

#[cfg(test)]
mod tests {
    use core_domain::billing::usage::UsageTotal;
    use core_domain::kernel::{PlatformId, Timestamp};
    use core_domain::registry::Platform;

    use super::super::place::{Place, place_of};
    use super::*;

    fn platform() -> PlatformId {
        PlatformId::parse("acme").unwrap()
    }

    #[test]
    fn hints_name_columns_of_tables_that_are_not_at_home() {
        let mut hints = 0;
        for table in crate::tables::all() {
            let columns = table.columns.iter();
            let hinting = columns.filter(|column| hint_of(table, column.name).is_some());
            let number = hinting.count();
            let is_elsewhere = matches!(place_of(table), Place::Named(..));
            assert!(number == 0 || is_elsewhere, "{}", table.name);
            hints += number;
        }
        assert_eq!(hints, 7);
        assert_eq!(hint_of(Platform::TABLE, "slug"), None);
    }

    #[test]
    fn ids_of_usage_and_keys_of_jobs_name_their_platform() {
        let named = Some(Owner::Platform("acme".to_owned()));
        let total = UsageTotal::id_of(&platform(), Timestamp::EPOCH);
        assert_eq!(platform_before_separator(&total), named);
        assert_eq!(platform_before_separator("acme:0:requests:80"), named);
        assert_eq!(platform_before_separator("acme"), None);
        let key = |platform| {
            JobKey::new("report", platform, "may:/\n")
                .as_str()
                .to_owned()
        };
        let acme = platform();
        assert_eq!(platform_of_job(&key(Some(&acme))), named);
        assert_eq!(platform_of_job(&key(None)), Some(Owner::Home));
        assert_eq!(platform_of_job("may"), Some(Owner::Home));
    }
}
