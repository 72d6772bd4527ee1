//! Walks through lists that come in pages.

use serde::de::DeserializeOwned;

use crate::call::Call;
use crate::client::Client;
use crate::envelope::ResultInfo;
use crate::error::CallError;

/// The longest list that is walked, in pages: an end for answers that never say it.
const MOST_PAGES: u64 = 1_000;

/// Whether pages follow this one of so many rows.
pub(crate) fn has_next(info: &ResultInfo, page: u64, rows: usize) -> bool {
    let per_page = info.per_page.unwrap_or(rows as u64);
    let total = info.total_count.unwrap_or(0);
    rows > 0 && page < MOST_PAGES && page.saturating_mul(per_page) < total
}

/// The list at a page; the first is what comes unasked.
pub(crate) fn at(list: Call, page: u64) -> Call {
    if page == 1 {
        list
    } else {
        list.query("page", page)
    }
}

/// The first row of a list of numbered pages that matches.
pub(crate) async fn first_match<T: DeserializeOwned>(
    client: &Client,
    list: &Call,
    matches: impl Fn(&T) -> bool,
) -> Result<Option<T>, CallError> {
    let mut page = 1;
    loop {
        let answer = client.fetch::<Vec<T>>(at(list.clone(), page)).await?;
        let rows = answer.result.len();
        if let Some(row) = answer.result.into_iter().find(&matches) {
            return Ok(Some(row));
        }
        if !has_next(&answer.info, page, rows) {
            return Ok(None);
        }
        page += 1;
    }
}

/// A page of a list of numbered pages, and the cursor of the next one.
pub(crate) async fn numbered_page<T: DeserializeOwned>(
    client: &Client,
    list: Call,
    cursor: Option<&str>,
) -> Result<(Vec<T>, Option<String>), CallError> {
    let page = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(1);
    let answer = client.fetch::<Vec<T>>(at(list, page)).await?;
    let next = has_next(&answer.info, page, answer.result.len()).then(|| (page + 1).to_string());
    Ok((answer.result, next))
}
