//! Reading the dead-letter queue.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::access::{OperatorScope, unowned_records};
use crate::kernel::{DlqEntryId, Line, ListQuery, Page, PlatformId, Result, Stored, TextValue};
use crate::port::UnitOfWork;
use crate::provisioning::{DeadLetter, DlqQuery, DlqStatus};

/// An entry of the dead-letter queue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DlqEntryView {
    /// The id of the entry; the same value as `id`.
    pub entry_id: DlqEntryId,
    /// The data of the entry.
    #[serde(flatten)]
    pub entry: DeadLetter,
}

impl From<DeadLetter> for DlqEntryView {
    fn from(entry: DeadLetter) -> Self {
        Self {
            entry_id: entry.id.clone(),
            entry,
        }
    }
}

/// Filters for a list of entries. An entry must match every given filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DlqFilter {
    /// The status of the entries to return, or `all`. Default: `PENDING`.
    #[serde(default)]
    pub status: DlqStatuses,
    /// Returns only entries of jobs of this platform.
    pub platform_id: Option<PlatformId>,
    /// Returns only entries of jobs of this kind.
    pub kind: Option<Line<1, 100>>,
}

/// One status of an entry, or `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DlqStatuses(Option<DlqStatus>);

const ALL: &str = "all";

impl Default for DlqStatuses {
    fn default() -> Self {
        Self(Some(DlqStatus::Pending))
    }
}

impl<'de> Deserialize<'de> for DlqStatuses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        if text == ALL {
            return Ok(Self(None));
        }
        let status = DlqStatus::from_text(&text);
        let unknown = || serde::de::Error::custom("is not the status of an entry or `all`");
        status.map(|status| Self(Some(status))).ok_or_else(unknown)
    }
}

impl JsonSchema for DlqStatuses {
    fn schema_name() -> Cow<'static, str> {
        "DlqStatuses".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words = DlqStatus::ALL.iter().map(|status| status.as_str());
        let words: Vec<&str> = words.chain([ALL]).collect();
        json_schema!({ "type": "string", "enum": words, "default": DlqStatus::Pending })
    }
}

/// Returns dead letters, newest first.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor is invalid.
pub async fn list_dead_letters(
    _: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<DlqFilter>,
) -> Result<Page<DlqEntryView>> {
    let filter = &query.filter;
    let matching = DlqQuery::Of {
        status: filter.status.0,
        platform_id: filter.platform_id.clone(),
        kind: filter.kind.as_ref().map(ToString::to_string),
    };
    let wanted = query.uncounted_page();
    let page = unowned_records::<DeadLetter>(uow)
        .page(&matching, &wanted)
        .await?;
    Ok(page.map(|dead_letter| dead_letter.into_inner().into()))
}

/// Returns a dead letter.
///
/// # Errors
/// `NOT_FOUND` if the dead letter does not exist.
pub async fn get_dead_letter(
    _: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    id: &DlqEntryId,
) -> Result<Stored<DeadLetter>> {
    unowned_records::<DeadLetter>(uow).get(id).await
}
