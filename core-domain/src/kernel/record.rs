//! Records: the items that a store keeps, the traits that describe them, and the list of all records.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

use super::{JsonText, PlatformId, Timestamp};

/// An item that a store keeps. Declare it with the macro `record!`.
///
/// `Query` is an enum of all queries on these records. Each query has a filter and an order.
pub trait Record: Clone + std::fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The queries on these records.
    type Query: Clone + std::fmt::Debug + Send + Sync + 'static;

    /// The owner of the records: [`PlatformOwned`] or [`Unowned`]. It decides which scopes can reach them.
    type Owner: Owner;

    /// The kind of record as people call it; part of `NOT_FOUND` messages.
    const KIND: &'static str;

    /// `true` if every change of such a record adds an entry to the audit log of its platform in the same commit.
    /// Stores use it to detect whether the records of a platform have changed.
    const CHANGES_ARE_AUDITED: bool = false;

    /// The entity type of the audit entries, if every change of such a record adds an entry of one type in the same
    /// commit. Stores use it to detect whether any record of this kind has changed. `None` if some changes add no such
    /// entry.
    const AUDITED_AS: Option<&'static str> = None;

    /// Returns the key, which is unique among the records of this kind.
    fn key(&self) -> &str;

    /// Returns the entity tag of the record at a version, without quotes. By default it is the version.
    fn etag(&self, version: i64) -> String {
        version.to_string()
    }
}

/// The owner of a record, as a type.
pub trait Owner {
    /// Whether the record belongs to a platform and is deleted with it.
    const IS_PLATFORM: bool;
}

/// The owner of records that belong to one platform; see [`OfPlatform`].
#[derive(Clone, Copy, Debug)]
pub enum PlatformOwned {}

impl Owner for PlatformOwned {
    const IS_PLATFORM: bool = true;
}

/// The owner of records that belong to no platform or to several.
#[derive(Clone, Copy, Debug)]
pub enum Unowned {}

impl Owner for Unowned {
    const IS_PLATFORM: bool = false;
}

/// A record that belongs to a platform. It can be read and written only through a scope on that platform. The store
/// filters by the column `platform_id` in every statement.
pub trait OfPlatform: Record<Owner = PlatformOwned> {
    /// Returns the platform of the record, which never changes.
    fn platform_id(&self) -> &PlatformId;
}

/// A record whose changes are written to the audit log.
pub trait Audited: Record {
    /// Returns the content of the record for the audit log: its public fields except those that must not be logged.
    fn audit_snapshot(&self) -> JsonText;

    /// Returns the platform whose audit log contains the changes; `None` if they belong to no platform.
    fn audit_platform(&self) -> Option<&PlatformId>;

    /// Sets the time of the last change, if the record has such a field.
    fn touch(&mut self, now: Timestamp);
}

/// A record and its version in the store. Clones share the record.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<R> {
    record: Arc<R>,
    version: i64,
}

impl<R> Stored<R> {
    /// Creates a stored record. Only stores call it.
    pub fn new(record: R, version: i64) -> Self {
        let record = Arc::new(record);
        Self { record, version }
    }

    /// Returns the version: 1 for a new record, increased by one with every change.
    pub const fn version(&self) -> i64 {
        self.version
    }
}

impl<R: Clone> Stored<R> {
    /// Returns the record without its version.
    pub fn into_inner(self) -> R {
        Arc::unwrap_or_clone(self.record)
    }
}

impl<R: Record> Stored<R> {
    /// Returns the entity tag, without quotes.
    #[must_use]
    pub fn etag(&self) -> String {
        self.record.etag(self.version)
    }

    /// Returns a copy of the record that can be changed and then stored as its replacement.
    #[must_use]
    pub fn edit(&self) -> R {
        R::clone(&self.record)
    }
}

impl<R> Deref for Stored<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.record
    }
}

/// Implements the record traits for a struct: its kind, key and queries, the platform that it belongs to, and whether
/// its changes are audited.
///
/// ```ignore
/// record! {
///     Entity as "entity" by id, asked EntityQuery;
///     of platform_id;             // The field with the platform that the record belongs to.
///     audited, touched updated_at;  // Or only `audited;` if the record has no time of its last change.
///     changes audited as "entity";  // If every change adds an audit entry of this type.
/// }
/// ```
macro_rules! record {
    (
        $record:ident as $kind:literal by $key:ident, asked $query:ty;
        $(of $platform:ident;)?
        $(audited $(in $audit_platform:expr)? $(, touched $touched:ident)? $(, without $($hidden:literal),+)?;)?
        $(changes audited as $audited_as:literal;)?
    ) => {
        impl $crate::kernel::Record for $record {
            type Query = $query;
            type Owner = $crate::kernel::record!(@owner $($platform)?);
            const KIND: &'static str = $kind;
            $(const CHANGES_ARE_AUDITED: bool = $crate::kernel::record!(@true $($touched)?);)?
            $(const AUDITED_AS: Option<&'static str> = Some($audited_as);)?

            fn key(&self) -> &str {
                AsRef::<str>::as_ref(&self.$key)
            }
        }

        $(
            impl $crate::kernel::OfPlatform for $record {
                fn platform_id(&self) -> &$crate::kernel::PlatformId {
                    &self.$platform
                }
            }
        )?

        $crate::kernel::record!(@audited $record [$($platform)?]
            $(audited [$($audit_platform)?] [$($touched)?] [$($($hidden),+)?])?);
    };
    (@true $($touched:ident)?) => { true };
    (@owner) => { $crate::kernel::Unowned };
    (@owner $platform:ident) => { $crate::kernel::PlatformOwned };
    (@audited $record:ident [$($platform:ident)?]) => {};
    (@audited $record:ident [$($platform:ident)?] audited [$($audit_platform:expr)?] [$($touched:ident)?] [$($hidden:literal),*]) => {
        impl $crate::kernel::Audited for $record {
            fn audit_snapshot(&self) -> $crate::kernel::JsonText {
                const HIDDEN: &[&str] = &[$($hidden),*];
                if HIDDEN.is_empty() {
                    return $crate::kernel::JsonText::of(self);
                }
                $crate::kernel::JsonText::of(&$crate::kernel::snapshot(self, HIDDEN))
            }

            fn audit_platform(&self) -> Option<&$crate::kernel::PlatformId> {
                $crate::kernel::record!(@platform self [$($platform)?] [$($audit_platform)?])
            }

            fn touch(&mut self, now: $crate::kernel::Timestamp) {
                let _ = now;
                $(self.$touched = now;)?
            }
        }
    };
    (@platform $this:ident [$platform:ident] []) => { Some(&$this.$platform) };
    (@platform $this:ident [] [$of:expr]) => {{
        let of: fn(&Self) -> Option<&$crate::kernel::PlatformId> = $of;
        of($this)
    }};
    (@platform $this:ident [] []) => { None };
}
pub(crate) use record;

/// Returns a record as JSON without the hidden fields.
pub(crate) fn snapshot<R: serde::Serialize>(record: &R, hidden: &[&str]) -> Value {
    // Records are structs of strings, numbers and enums, so serializing them cannot fail.
    let mut snapshot = serde_json::to_value(record).unwrap_or(Value::Null);
    if let Some(fields) = snapshot.as_object_mut() {
        fields.retain(|name, _| !hidden.contains(&name.as_str()));
    }
    snapshot
}
