//! Reading of paginated lists.

use serde::de::DeserializeOwned;

use crate::call::Call;
use crate::client::Client;
use crate::envelope::ResultInfo;
use crate::error::CallError;

/// Maximum number of pages that are read, in case a list never ends.
const MAX_PAGES: u64 = 1_000;

/// Returns whether another page follows this one, which has `rows` rows.
pub(crate) fn has_next(info: &ResultInfo, page: u64, rows: usize) -> bool {
    let per_page = info.per_page.unwrap_or(rows as u64);
    let total = info.total_count.unwrap_or(0);
    rows > 0 && page < MAX_PAGES && page.saturating_mul(per_page) < total
}

/// Returns the call for a page of the list. The first page needs no parameter.
pub(crate) fn with_page(list: Call, page: u64) -> Call {
    if page == 1 {
        list
    } else {
        list.query("page", page)
    }
}

/// Returns the first matching row of a list with numbered pages.
pub(crate) async fn first_match<T: DeserializeOwned>(
    client: &Client,
    list: &Call,
    matches: impl Fn(&T) -> bool,
) -> Result<Option<T>, CallError> {
    let mut page = 1;
    loop {
        let answer = client
            .fetch::<Vec<T>>(with_page(list.clone(), page))
            .await?;
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

/// Returns one page of a list with numbered pages, and the cursor of the next page.
pub(crate) async fn numbered_page<T: DeserializeOwned>(
    client: &Client,
    list: Call,
    cursor: Option<&str>,
) -> Result<(Vec<T>, Option<String>), CallError> {
    let page = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(1);
    let answer = client.fetch::<Vec<T>>(with_page(list, page)).await?;
    let next = has_next(&answer.info, page, answer.result.len()).then(|| (page + 1).to_string());
    Ok((answer.result, next))
}
