//! Cases for filters and order, which all engines must evaluate in the same way.

use std::sync::Arc;

use super::fixture::{ITEMS, add, ids, item, keys, of, read, with};
use crate::filter::Filter;
use crate::row_store::RowStore;
use crate::value::{Row, Value};

fn population() -> Vec<Row> {
    let names = [None, Some("a"), Some("ab"), Some("b"), Some("B")];
    let amounts = [None, Some(-1), Some(0), Some(7)];
    let flags = [Value::Null, Value::Bool(true), Value::Bool(false)];
    let mut rows = Vec::new();
    for n in 0..24_usize {
        let row = item(
            "filters",
            &format!("{n:02}"),
            i64::try_from(n % 5).unwrap_or(0),
        );
        let name = names[n % names.len()].map(|name| format!("{name}{n}"));
        let row = with(
            row,
            "name",
            name.map_or(Value::Null, |name| Value::text(&name)),
        );
        let amount = amounts[n % amounts.len()];
        let row = with(row, "amount", amount.map_or(Value::Null, Value::Int));
        rows.push(with(row, "flag", flags[n % flags.len()].clone()));
    }
    rows
}

fn filters() -> Vec<Filter> {
    let simple = vec![
        Filter::all(),
        Filter::Or(Vec::new()),
        Filter::eq("amount", 7),
        Filter::ne("amount", 7),
        Filter::lt("amount", 0),
        Filter::le("amount", 0),
        Filter::gt("rank", 2),
        Filter::ge("rank", 2),
        Filter::eq("flag", true),
        Filter::ne("flag", true),
        Filter::IsNull("name"),
        Filter::NotNull("name"),
        Filter::Disjoint(vec![
            Filter::eq("name", "a"),
            Filter::ne("name", "a").and(Filter::ge("rank", 2)),
        ]),
        Filter::Disjoint(Vec::new()),
        Filter::Prefix("name", "a".to_owned()),
        Filter::Prefix("name", String::new()),
        Filter::eq("amount", Value::Null),
        Filter::ne("name", Value::Null),
        Filter::In("amount", Vec::new()),
        Filter::one_of("amount", [7, -1]),
        Filter::In("amount", vec![Value::Int(0), Value::Null]),
        Filter::one_of("name", ["ab2", "B4", "nobody"]),
    ];
    let mut all = simple.clone();
    for left in &simple {
        for right in &simple {
            all.push(left.clone().and(right.clone()));
            all.push(Filter::Or(vec![left.clone(), right.clone()]));
        }
    }
    all
}

pub(super) async fn filters_match_the_same_rows_as_in_memory(store: Arc<dyn RowStore>) {
    let rows = population();
    add(&store, rows.clone()).await;
    for filter in filters() {
        let matching = rows
            .iter()
            .filter(|row| filter.matches(&ITEMS, row))
            .cloned();
        let found = read(&store, &of("filters").filter(filter.clone())).await;
        assert_eq!(
            ids(&found),
            ids(&matching.collect::<Vec<_>>()),
            "{filter:?}"
        );
    }
}

pub(super) async fn null_is_neither_equal_nor_unequal(store: Arc<dyn RowStore>) {
    let some = with(item("null", "some", 0), "amount", Value::Int(1));
    add(&store, vec![item("null", "none", 0), some]).await;
    let found = |filter| {
        let select = of("null").filter(filter);
        let store = store.clone();
        async move { ids(&read(&store, &select).await) }
    };
    assert!(found(Filter::ne("amount", 1)).await.is_empty());
    assert_eq!(
        found(Filter::eq("amount", 1)).await,
        keys("null", &["some"])
    );
    let either = Filter::Or(vec![Filter::ne("amount", 1), Filter::IsNull("amount")]);
    assert_eq!(found(either).await, keys("null", &["none"]));
}

pub(super) async fn text_is_ordered_by_its_bytes(store: Arc<dyn RowStore>) {
    let in_order = [
        "Alpha",
        "a-b",
        "a_b",
        "alpha",
        "zeta",
        "émile",
        "\u{FFFD}",
        "\u{10000}",
    ];
    let rows: Vec<Row> = in_order
        .iter()
        .rev()
        .map(|id| item("text", id, 0))
        .collect();
    add(&store, rows).await;
    assert_eq!(
        ids(&read(&store, &of("text")).await),
        keys("text", &in_order)
    );
    let descending = of("text").order_by_desc("id");
    let mut reversed = keys("text", &in_order);
    reversed.reverse();
    assert_eq!(ids(&read(&store, &descending).await), reversed);
}
