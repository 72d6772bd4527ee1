//! Pagination of lists.

use serde_json::{Value, json};

use crate::envelope::{Refusal, Reply, ok_with_info};
use crate::request::Request;

/// The limits of the length of a numbered page.
#[derive(Clone, Copy)]
pub(crate) struct PageSize {
    pub(crate) min: usize,
    pub(crate) default: usize,
    pub(crate) max: usize,
}

/// Returns the numbered page that a request selects.
pub(crate) fn page(request: &Request, items: Vec<Value>, size: PageSize) -> Reply {
    let number = |name: &str, default| match request.param(name) {
        None => Ok(default),
        Some(text) => text.parse::<usize>().map_err(|_| INVALID_PAGE),
    };
    let (page, per_page) = (number("page", 1)?, number("per_page", size.default)?);
    if page == 0 || per_page < size.min || per_page > size.max {
        return Err(INVALID_PAGE);
    }
    let total = items.len();
    let first = (page - 1).saturating_mul(per_page);
    let items: Vec<_> = items.into_iter().skip(first).take(per_page).collect();
    let info = json!({
        "page": page,
        "per_page": per_page,
        "count": items.len(),
        "total_count": total,
        "total_pages": total.div_ceil(per_page),
    });
    ok_with_info(Value::Array(items), info)
}

/// Returns the page after a cursor, and the cursor of the next page. A cursor is the name of the last item of the
/// previous page. It is empty at the end.
///
/// The items must be sorted by name.
pub(crate) fn cursor_page<T>(
    items: Vec<(String, T)>,
    cursor: Option<&str>,
    limit: usize,
) -> (Vec<T>, String) {
    let mut rest = items
        .into_iter()
        .filter(|(name, _)| cursor.is_none_or(|cursor| name.as_str() > cursor));
    let page: Vec<_> = rest.by_ref().take(limit).collect();
    let last = page.last().map(|(name, _)| name.clone());
    let cursor = last.filter(|_| rest.next().is_some()).unwrap_or_default();
    (page.into_iter().map(|(_, item)| item).collect(), cursor)
}

const INVALID_PAGE: Refusal = Refusal::new(400, 10001, "page or per_page is out of range");
