//! The tables of all records, one file for each service.

mod api_keys;
mod audit;
mod billing;
mod cli;
mod iam;
mod oauth;
mod provisioning;
mod registry;
mod shared;
mod stacks;
mod usage;

use core_domain::kernel::for_each_record;

use crate::table::Table;
use crate::tabular::Tabular;

macro_rules! record_tables {
    ($($accessor:ident: $record:ty $(, $id:ident $doc:literal)?;)+) => {
        /// Returns the tables of all records, in the order of the list of records. A staging table follows its table.
        #[must_use]
        pub fn of_records() -> Vec<&'static Table> {
            let tables = [$((Some(<$record as Tabular>::TABLE), <$record as Tabular>::STAGING)),+];
            tables.into_iter().flat_map(|(table, staging)| [table, staging]).flatten().collect()
        }
    };
}
for_each_record!(record_tables);

/// Returns every table: those of records, and those that connect [cells](crate::cells).
#[must_use]
pub fn all() -> Vec<&'static Table> {
    let mut tables = of_records();
    tables.extend(crate::cells::tables::ALL);
    tables
}
