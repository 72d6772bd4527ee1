//! The mapping of records to the rows of a table, and the macro that describes it.

use core_domain::kernel::{Record, StoreError, Stored};

use crate::codec::{ColumnCodec, DecodeError};
use crate::query::Select;
use crate::table::Table;
use crate::value::{ReadRow, Row, ValueRef};

/// A record that is stored in a table. Implement it with [`crate::table!`].
pub trait Tabular: Record {
    /// The table of the record.
    const TABLE: &'static Table;

    /// The staging table, for records that have one. It has the same columns and fewer indexes. New records are added
    /// to it, and are later promoted to [`Tabular::TABLE`]; reads use both tables. Adding a record therefore does not
    /// update all indexes.
    const STAGING: Option<&'static Table> = None;

    /// Encodes the record's columns, without the version.
    fn to_row(&self) -> Row;

    /// Decodes a record and its version from a row.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the name of the column that cannot be decoded.
    fn from_row(row: &dyn ReadRow) -> Result<(Self, i64), StoreError>;

    /// Translates the query into columns.
    fn select(query: &Self::Query) -> Select;
}

/// Decodes the columns of a row one after the other.
pub struct RowReader<'r> {
    table: &'static Table,
    row: &'r dyn ReadRow,
    at: usize,
}

impl std::fmt::Debug for RowReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("table", &self.table.name)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl<'r> RowReader<'r> {
    /// Creates a reader that starts at the first column.
    #[must_use]
    pub fn new(table: &'static Table, row: &'r dyn ReadRow) -> Self {
        Self { table, row, at: 0 }
    }

    /// Decodes the next column.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the value cannot be decoded.
    pub fn decode<T, C: ColumnCodec<T>>(&mut self) -> Result<T, StoreError> {
        let at = self.at;
        self.at += 1;
        C::decode(self.row.read(at)?).map_err(|error| self.corrupt(at, error))
    }

    /// Skips columns that are computed from others.
    pub fn skip(&mut self, count: usize) {
        self.at += count;
    }

    #[cold]
    fn corrupt(&self, at: usize, error: DecodeError) -> StoreError {
        let key = self.row.read(0).ok().and_then(ValueRef::as_text);
        StoreError::Corrupt {
            table: self.table.name,
            column: self.table.columns.get(at).map_or("", |c| c.name),
            key: key.unwrap_or_default().to_owned(),
            source: error.into(),
        }
    }
}

/// Describes the table of a record, see the crate's documentation.
#[macro_export]
macro_rules! table {
    (
        $record:ident in $name:literal {
            $($field:ident: $kind:ty),+ $(,)?
        }
        $(computed { $($computed:ident: $computed_kind:ty = $compute:expr),+ $(,)? })?
        $(unique { $($unique:ident: [$($unique_column:ident),+] $(where [$($predicate:expr),+])?),+ $(,)? })?
        $(index {
            $([$($index_column:ident),*] $(include [$($included:ident),+])? $(where [$($index_predicate:expr),+])?),+ $(,)?
        })?
        $(parent $parent:ident)?
        $(rows $rows:ident $(until $archive:literal . $bound:ident)?)?
        $(staging $staging:literal index { $([$($staging_column:ident),+]),+ $(,)? })?
        select $select:path
    ) => {
        impl $crate::Tabular for $record {
            $(
                const STAGING: Option<&'static $crate::Table> = Some(&$crate::Table {
                    name: $staging,
                    append_only: false,
                    archive: None,
                    indexes: &[$($crate::Index::on(&[$(stringify!($staging_column)),+])),+],
                    ..*Self::TABLE
                });
            )?
            const TABLE: &'static $crate::Table = {
                // Checks that the codec of each column fits the type of its field.
                const fn column<T, K: $crate::codec::ColumnCodec<T>>(
                    name: &'static str,
                    _: fn(&$record) -> &T,
                ) -> $crate::Column {
                    $crate::Column { name, kind: K::TYPE, nullable: K::NULLABLE }
                }
                $(
                    const fn computed_column<T, K: $crate::codec::ColumnCodec<T>>(
                        name: &'static str,
                        _: fn(&$record) -> T,
                    ) -> $crate::Column {
                        $(let _ = stringify!($computed);)+
                        $crate::Column { name, kind: K::TYPE, nullable: K::NULLABLE }
                    }
                )?
                &$crate::Table {
                    name: $name,
                    columns: &[
                        $(column::<_, $kind>(stringify!($field), |record| &record.$field),)+
                        $($(computed_column::<_, $computed_kind>(stringify!($computed), $compute),)+)?
                        $crate::Column { name: $crate::VERSION, kind: $crate::Type::Int, nullable: false },
                    ],
                    uniques: &[$($($crate::Unique {
                        name: stringify!($unique),
                        columns: &[$(stringify!($unique_column)),+],
                        predicates: &[$($($predicate),+)?],
                    }),+)?],
                    indexes: &[$($($crate::Index {
                        columns: &[$(stringify!($index_column)),*],
                        includes: &[$($(stringify!($included)),+)?],
                        predicates: &[$($($index_predicate),+)?],
                    }),+)?],
                    parent: $crate::table!(@parent $($parent)?),
                    append_only: $crate::table!(@append_only $($rows)?),
                    archive: $crate::table!(@archive $($($archive $bound)?)?),
                }
            };

            fn to_row(&self) -> $crate::Row {
                fn encode<T, K: $crate::codec::ColumnCodec<T>>(field: &T) -> $crate::Value {
                    K::encode(field)
                }
                vec![
                    $(encode::<_, $kind>(&self.$field),)+
                    $($({
                        let compute: fn(&$record) -> _ = $compute;
                        encode::<_, $computed_kind>(&compute(self))
                    },)+)?
                ]
            }

            fn from_row(row: &dyn $crate::ReadRow) -> Result<(Self, i64), core_domain::kernel::StoreError> {
                let mut reader = $crate::RowReader::new(<Self as $crate::Tabular>::TABLE, row);
                let record = $record { $($field: reader.decode::<_, $kind>()?),+ };
                $(reader.skip([$(stringify!($computed)),+].len());)?
                let version = reader.decode::<i64, $crate::codec::Int>()?;
                Ok((record, version))
            }

            fn select(query: &<$record as core_domain::kernel::Record>::Query) -> $crate::Select {
                $select(query)
            }
        }
    };
    (@parent) => { None };
    (@parent $parent:ident) => { Some(stringify!($parent)) };
    (@append_only) => { false };
    (@append_only append_only) => { true };
    (@archive) => { None };
    (@archive $archive:literal $bound:ident) => {
        Some($crate::ArchiveBound { table: $archive, column: stringify!($bound) })
    };
}

/// Decodes a row into a record with its version.
pub(crate) fn decode<R: Tabular>(row: &dyn ReadRow) -> Result<Stored<R>, StoreError> {
    let (record, version) = R::from_row(row)?;
    Ok(Stored::new(record, version))
}
