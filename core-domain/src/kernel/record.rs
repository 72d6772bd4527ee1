//! Records: what a store keeps, and what every record says of itself.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

use super::{JsonText, PlatformId, Timestamp};

/// A thing a store keeps. Declared with the macro `record!`.
///
/// `Query` is a closed enum of the questions that can be asked of these records; each names its filter and order.
pub trait Record: Clone + std::fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The questions that can be asked.
    type Query: Clone + std::fmt::Debug + Send + Sync + 'static;

    /// Whose it is: [`PlatformOwned`] or [`Unowned`]. Decides which scopes reach it.
    type Owner: Owner;

    /// What people call it; the word of `NOT_FOUND`.
    const KIND: &'static str;

    /// Whether every change of such a record adds an entry to the audit of its platform, in the same commit; stores rely on
    /// it to tell whether a platform's records have changed.
    const CHANGES_ARE_AUDITED: bool = false;

    /// The text that tells this record from all others of its kind.
    fn key(&self) -> &str;

    /// The entity tag of the record at a version, without quotes: the version, unless the record says otherwise.
    fn etag(&self, version: i64) -> String {
        version.to_string()
    }
}

/// Whose a record is.
pub trait Owner {
    /// Whether it belongs to a platform, and goes with it.
    const IS_PLATFORM: bool;
}

/// Of a record that belongs to a platform, see [`OfPlatform`].
#[derive(Clone, Copy, Debug)]
pub enum PlatformOwned {}

impl Owner for PlatformOwned {
    const IS_PLATFORM: bool = true;
}

/// Of a record that belongs to no platform, or not to one alone.
#[derive(Clone, Copy, Debug)]
pub enum Unowned {}

impl Owner for Unowned {
    const IS_PLATFORM: bool = false;
}

/// A record that belongs to a platform. It is read and written through a scope on that platform alone, and the store
/// compares the column `platform_id` in every statement.
pub trait OfPlatform: Record<Owner = PlatformOwned> {
    /// The platform; never changes.
    fn platform_id(&self) -> &PlatformId;
}

/// A record whose changes the audit keeps.
pub trait Audited: Record {
    /// What the audit keeps of the record: what the interface shows of it, without what no audit should keep.
    fn audit_snapshot(&self) -> JsonText;

    /// The platform whose audit its changes belong to, if any.
    fn audit_platform(&self) -> Option<&PlatformId>;

    /// Notes when it was last changed, if the record keeps that.
    fn touch(&mut self, now: Timestamp);
}

/// A record as it stands in the store, with the version the store gave it. A clone shares the record.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<R> {
    record: Arc<R>,
    version: i64,
}

impl<R> Stored<R> {
    /// For stores alone: a record at a version.
    pub fn new(record: R, version: i64) -> Self {
        let record = Arc::new(record);
        Self { record, version }
    }

    /// The version: 1 for a new record, one more at every change.
    pub const fn version(&self) -> i64 {
        self.version
    }
}

impl<R: Clone> Stored<R> {
    /// The record alone.
    pub fn into_inner(self) -> R {
        Arc::unwrap_or_clone(self.record)
    }
}

impl<R: Record> Stored<R> {
    /// The entity tag, without quotes.
    #[must_use]
    pub fn etag(&self) -> String {
        self.record.etag(self.version)
    }

    /// A copy of the record, to be changed and put in its place.
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

/// Declares what a struct is as a record: its name in messages, its key, its queries; the platform it belongs to; and
/// whether the audit keeps its changes.
///
/// ```ignore
/// record! {
///     Entity as "entity" by id, asked EntityQuery;
///     of platform_id;             // belongs to the platform of this field
///     audited, touched updated_at;  // or `audited;`, for one that keeps no instant of its last change
/// }
/// ```
macro_rules! record {
    (
        $record:ident as $kind:literal by $key:ident, asked $query:ty;
        $(of $platform:ident;)?
        $(audited $(in $audit_platform:expr)? $(, touched $touched:ident)? $(, without $($hidden:literal),+)?;)?
    ) => {
        impl $crate::kernel::Record for $record {
            type Query = $query;
            type Owner = $crate::kernel::record!(@owner $($platform)?);
            const KIND: &'static str = $kind;
            $(const CHANGES_ARE_AUDITED: bool = $crate::kernel::record!(@true $($touched)?);)?

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

/// A record as JSON without the fields named.
pub(crate) fn snapshot<R: serde::Serialize>(record: &R, hidden: &[&str]) -> Value {
    // Records are structs of text, numbers and words, which are always JSON.
    let mut snapshot = serde_json::to_value(record).unwrap_or(Value::Null);
    if let Some(fields) = snapshot.as_object_mut() {
        fields.retain(|name, _| !hidden.contains(&name.as_str()));
    }
    snapshot
}
