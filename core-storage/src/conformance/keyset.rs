//! Cases for keyset pagination.

use std::sync::Arc;

use super::fixture::{ITEMS, add, ids, item, of, position, read, with};
use crate::query::{Select, compare_positions};
use crate::row_store::RowStore;
use crate::value::{Row, Value};

async fn page_by_page(store: &Arc<dyn RowStore>, select: &Select, size: u32) -> Vec<Row> {
    let mut found = Vec::new();
    let mut select = select.clone().limit(size);
    loop {
        let page = read(store, &select).await;
        let Some(last) = page.last() else {
            return found;
        };
        select.after = Some(position(&select, last));
        found.extend(page);
    }
}

pub(super) async fn pages_repeat_and_skip_no_row_under_concurrent_inserts(
    store: Arc<dyn RowStore>,
) {
    // Ranks repeat, so rows with the same rank are ordered by key.
    let rows: Vec<Row> = (0..20)
        .map(|n| item("pages", &format!("{n:02}"), n / 4))
        .collect();
    add(&store, rows.clone()).await;
    for select in [
        of("pages").order_by("rank"),
        of("pages").order_by_desc("rank"),
        of("pages"),
    ] {
        let mut seen = Vec::new();
        let mut next = select.clone().limit(3);
        for step in 0.. {
            let page = read(&store, &next).await;
            let Some(last) = page.last() else { break };
            next.after = Some(position(&next, last));
            seen.extend(ids(&page));
            let extra = format!("extra-{step}-{}", seen.len());
            let extra = with(
                item("pages", &extra, 2),
                "platform_id",
                Value::text("pages"),
            );
            add(&store, vec![extra]).await;
            assert!(step < 100, "the list ends");
        }
        for id in ids(&rows) {
            assert_eq!(seen.iter().filter(|one| **one == id).count(), 1, "{id}");
        }
        let clean = crate::Filter::Prefix("id", "pages-extra".to_owned());
        let removed = super::fixture::write(&store, |tx| {
            let clean = clean.clone();
            Box::pin(async move { tx.delete(&ITEMS, &clean).await })
        });
        assert!(removed.await.is_ok());
    }
}

pub(super) async fn pages_of_mixed_directions_are_in_order(store: Arc<dyn RowStore>) {
    let mut rows = Vec::new();
    for n in 0..30_i64 {
        let row = item("mixed", &format!("{:02}", (n * 7) % 30), n % 3);
        rows.push(with(
            row,
            "state",
            Value::text(["x", "y"][usize::from(n % 2 == 0)]),
        ));
    }
    add(&store, rows.clone()).await;
    let selects = [
        of("mixed").order_by("rank").order_by_desc("state"),
        of("mixed").order_by_desc("rank").order_by("state"),
        of("mixed")
            .order_by_desc("state")
            .order_by("rank")
            .order_by_desc("id"),
        of("mixed").order_by("state").order_by("rank"),
        of("mixed").order_by_desc("id"),
    ];
    for select in selects {
        let order = select.full_order();
        let mut sorted = rows.clone();
        sorted.sort_by(|a, b| {
            compare_positions(&order, &position(&select, a), &position(&select, b))
        });
        let found = page_by_page(&store, &select, 4).await;
        assert_eq!(ids(&found), ids(&sorted), "{order:?}");
    }
}
