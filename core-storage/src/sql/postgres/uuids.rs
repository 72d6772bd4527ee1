//! The texts of the UUIDs of a row.

use core_domain::kernel::StoreError;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::table::{Column, Type};
use crate::value::ValueRef;

/// The index of a column, and the text of its UUID; `None` is NULL.
type UuidText = (usize, Option<[u8; Hyphenated::LENGTH]>);

/// The texts of the UUIDs of a row, which the server sends as 16 bytes. The buffer is used again for each row.
#[derive(Debug, Default)]
pub struct UuidTexts(Vec<UuidText>);

impl UuidTexts {
    /// Replaces the texts by those of another row. `is_uuid` is asked for columns that are described as UUIDs, because databases
    /// of early servers store them as text. `read` reads the other ones.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read_row(
        &mut self,
        columns: &[Column],
        is_uuid: impl Fn(usize) -> bool,
        read: impl Fn(usize) -> Result<Option<Uuid>, StoreError>,
    ) -> Result<(), StoreError> {
        self.0.clear();
        let columns = columns.iter().enumerate();
        let described = columns.filter(|(_, column)| column.kind == Type::Uuid);
        for (at, _) in described.filter(|(at, _)| is_uuid(*at)) {
            self.0.push((at, read(at)?.map(text_of)));
        }
        Ok(())
    }

    /// Returns the value of a column; `None` if the database does not store it as UUIDs.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<ValueRef<'_>> {
        let (_, text) = self.0.iter().find(|(of, _)| *of == at)?;
        let text = text
            .as_ref()
            .and_then(|text| std::str::from_utf8(text).ok());
        Some(text.map_or(ValueRef::Null, ValueRef::Text))
    }
}

fn text_of(uuid: Uuid) -> [u8; Hyphenated::LENGTH] {
    let mut text = [0; Hyphenated::LENGTH];
    uuid.as_hyphenated().encode_lower(&mut text);
    text
}
