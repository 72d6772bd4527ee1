//! What a record must say to be kept in a table, and the macro it says it with.

use core_domain::port::{Record, StoreError};

use crate::kind::Kind;
use crate::query::Select;
use crate::table::Table;
use crate::value::{Row, Value};

/// A record that is kept in a table. Written with [`crate::table!`].
pub trait Tabular: Record {
    /// The table.
    const TABLE: &'static Table;

    /// The record's columns, without the version.
    fn to_row(&self) -> Row;

    /// The record of a row, and its version.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] names the column that makes no sense.
    fn from_row(row: Row) -> Result<(Self, i64), StoreError>;

    /// The question in terms of columns.
    fn select(query: &Self::Query) -> Select;
}

/// Reads the columns of a row one after the other.
#[derive(Debug)]
pub struct Reader {
    table: &'static Table,
    key: String,
    at: usize,
    values: std::vec::IntoIter<Value>,
}

impl Reader {
    /// Starts at the first column.
    #[must_use]
    pub fn new(table: &'static Table, row: Row) -> Self {
        Self {
            table,
            key: row
                .first()
                .and_then(Value::as_text)
                .unwrap_or_default()
                .to_owned(),
            at: 0,
            values: row.into_iter(),
        }
    }

    /// Reads the next column.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when its value makes no sense.
    pub fn take<T, K: Kind<T>>(&mut self) -> Result<T, StoreError> {
        let at = self.at;
        self.at += 1;
        let corrupt = || StoreError::Corrupt {
            table: self.table.name,
            column: self.table.columns.get(at).map_or("", |c| c.name),
            key: self.key.clone(),
        };
        let value = self.values.next().ok_or_else(corrupt)?;
        K::take(value).ok_or_else(corrupt)
    }

    /// Passes over columns that are computed from others.
    pub fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.at += 1;
            self.values.next();
        }
    }
}

/// Describes the table of a record: see the crate's documentation.
#[macro_export]
macro_rules! table {
    (
        $record:ident in $name:literal {
            $($field:ident: $kind:ty),+ $(,)?
        }
        $(computed { $($computed:ident: $computed_kind:ty = $compute:expr),+ $(,)? })?
        $(unique { $($unique:ident: [$($unique_column:ident),+] $(only [$($only:expr),+])?),+ $(,)? })?
        $(index { $([$($index_column:ident),+]),+ $(,)? })?
        $(parent $parent:ident)?
        select $select:path
    ) => {
        impl $crate::Tabular for $record {
            const TABLE: &'static $crate::Table = {
                // Ties each column's kind to the type of its field.
                const fn column<T, K: $crate::kind::Kind<T>>(
                    name: &'static str,
                    _: fn(&$record) -> &T,
                ) -> $crate::Column {
                    $crate::Column { name, kind: K::TYPE, nullable: K::NULLABLE }
                }
                $(
                    const fn computed<T, K: $crate::kind::Kind<T>>(
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
                        $($(computed::<_, $computed_kind>(stringify!($computed), $compute),)+)?
                        $crate::Column { name: $crate::VERSION, kind: $crate::Type::Int, nullable: false },
                    ],
                    uniques: &[$($($crate::Unique {
                        name: stringify!($unique),
                        columns: &[$(stringify!($unique_column)),+],
                        only: &[$($($only),+)?],
                    }),+)?],
                    indexes: &[$($(&[$(stringify!($index_column)),+]),+)?],
                    parent: $crate::table!(@parent $($parent)?),
                }
            };

            fn to_row(&self) -> $crate::Row {
                fn put<T, K: $crate::kind::Kind<T>>(field: &T) -> $crate::Value {
                    K::put(field)
                }
                vec![
                    $(put::<_, $kind>(&self.$field),)+
                    $($({
                        let compute: fn(&$record) -> _ = $compute;
                        put::<_, $computed_kind>(&compute(self))
                    },)+)?
                ]
            }

            fn from_row(row: $crate::Row) -> Result<(Self, i64), core_domain::port::StoreError> {
                let mut reader = $crate::Reader::new(<Self as $crate::Tabular>::TABLE, row);
                let record = $record { $($field: reader.take::<_, $kind>()?),+ };
                $(reader.skip([$(stringify!($computed)),+].len());)?
                let version = reader.take::<i64, $crate::kind::Int>()?;
                Ok((record, version))
            }

            fn select(query: &<$record as core_domain::port::Record>::Query) -> $crate::Select {
                $select(query)
            }
        }
    };
    (@parent) => { None };
    (@parent $parent:ident) => { Some(stringify!($parent)) };
}
