//! Pages of lists, newest first.

use serde_json::{Value, json};

use crate::envelope::{Refusal, Reply};
use crate::params::Params;

/// The parameters of every list.
pub(crate) const PAGE: [&str; 3] = ["limit", "starting_after", "ending_before"];

const DEFAULT_LIMIT: usize = 10;
const MAX_LIMIT: i64 = 100;

fn limit(params: &Params) -> Result<usize, Refusal> {
    match params.integer("limit")? {
        None => Ok(DEFAULT_LIMIT),
        Some(limit @ 1..=MAX_LIMIT) => Ok(usize::try_from(limit).unwrap_or(DEFAULT_LIMIT)),
        Some(_) => {
            let message = "The limit must be between 1 and 100.";
            Err(Refusal::parameter("limit", message).code("parameter_invalid_integer"))
        }
    }
}

/// Returns one page of rendered objects, which are in the order of the list.
pub(crate) fn page(rows: Vec<Value>, params: &Params, url: &str) -> Reply {
    let limit = limit(params)?;
    let position = |name: &str| match params.text(name)? {
        None => Ok(None),
        Some(id) => {
            let at = rows.iter().position(|row| row["id"] == id);
            at.map(Some)
                .ok_or_else(|| Refusal::missing("object", id, name))
        }
    };
    let (after, before) = (position("starting_after")?, position("ending_before")?);
    let (data, has_more) = match (after, before) {
        (_, Some(end)) => {
            let start = end.saturating_sub(limit);
            (&rows[start..end], start > 0)
        }
        (after, None) => {
            let start = after.map_or(0, |at| at + 1);
            let end = rows.len().min(start + limit);
            (&rows[start..end], end < rows.len())
        }
    };
    Ok(json!({"object": "list", "data": data, "has_more": has_more, "url": url}))
}

/// A range of times in Unix seconds.
pub(crate) struct TimeRange {
    from: i64,
    /// The end of the range, which it does not include.
    to: i64,
}

impl TimeRange {
    pub(crate) fn of_creation(params: &Params) -> Result<Self, Refusal> {
        let range = params.object("created")?;
        range.only(&["gt", "gte", "lt", "lte"])?;
        let from = match (range.integer("gt")?, range.integer("gte")?) {
            (Some(time), _) => time + 1,
            (None, time) => time.unwrap_or(i64::MIN),
        };
        let to = match (range.integer("lt")?, range.integer("lte")?) {
            (Some(time), _) => time,
            (None, time) => time.map_or(i64::MAX, |time| time + 1),
        };
        Ok(Self { from, to })
    }

    pub(crate) const fn contains(&self, time: i64) -> bool {
        self.from <= time && time < self.to
    }
}
