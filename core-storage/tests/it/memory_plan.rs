//! Whatever plan the memory engine chooses, its result equals that of a simple filter, sort and limit.

use std::cmp::Ordering;
use std::sync::Arc;

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::Mode;
use core_domain::testing::ManualClock;
use core_storage::conformance::ITEMS;
use core_storage::{Filter, ReadRow, Row, Select, Value, memory};
use proptest::prelude::*;

fn row(n: usize, owner: u8, rank: i64, amount: Option<i64>) -> Row {
    let mut row = vec![Value::Null; ITEMS.columns.len()];
    let mut set = |column: &str, value| {
        if let Some(stored) = ITEMS.column_index(column).and_then(|at| row.get_mut(at)) {
            *stored = value;
        }
    };
    set("id", Value::text(&format!("{:03}", (n * 37) % 101)));
    set("platform_id", Value::text(&owner.to_string()));
    set("rank", Value::Int(rank));
    set("amount", amount.map_or(Value::Null, Value::Int));
    // At most one row of an owner is active.
    let state = if n == usize::from(owner) { 2 } else { n % 2 };
    set("state", Value::text(["idle", "busy", "active"][state]));
    set("row_version", Value::Int(1));
    row
}

fn position(select: &Select, row: &Row) -> Vec<Value> {
    select.position_of(row).unwrap()
}

fn naive(rows: &[Row], select: &Select) -> Vec<Row> {
    let order = select.full_order();
    let compare = |a: &[Value], b: &[Value]| {
        let parts = order.iter().zip(a.iter().zip(b));
        let orderings = parts.map(|(part, (a, b))| match part.descending {
            true => b.cmp(a),
            false => a.cmp(b),
        });
        orderings.fold(Ordering::Equal, Ordering::then)
    };
    let mut found: Vec<Row> = rows
        .iter()
        .filter(|row| select.filter.matches(&ITEMS, row))
        .filter(|row| {
            let after = select.after.as_ref();
            after.is_none_or(|after| compare(&position(select, row), after).is_gt())
        })
        .cloned()
        .collect();
    found.sort_by(|a, b| compare(&position(select, a), &position(select, b)));
    found.truncate(select.limit.map_or(usize::MAX, |limit| limit as usize));
    found
}

fn part() -> impl Strategy<Value = Filter> {
    let owners = prop::collection::vec(0_u8..4, 0..3);
    let keys = prop::collection::vec(0_usize..101, 0..4);
    prop_oneof![
        (0_u8..4).prop_map(|owner| Filter::eq("platform_id", &*owner.to_string())),
        (0_i64..6).prop_map(|rank| Filter::eq("rank", rank)),
        (0_i64..6).prop_map(|rank| Filter::gt("rank", rank)),
        (0_i64..6).prop_map(|rank| Filter::ge("rank", rank)),
        (0_i64..6).prop_map(|rank| Filter::lt("rank", rank)),
        (0_i64..6).prop_map(|rank| Filter::le("rank", rank)),
        (0_i64..3).prop_map(|amount| Filter::ne("amount", amount)),
        Just(Filter::IsNull("amount")),
        Just(Filter::eq("state", "idle")),
        Just(Filter::Prefix("id", "0".to_owned())),
        (0_u8..4).prop_map(|owner| Filter::Prefix("platform_id", owner.to_string())),
        Just(Filter::And(vec![
            Filter::eq("state", "active"),
            Filter::IsNull("desc"),
        ])),
        Just(Filter::one_of("state", ["idle", "active"])),
        prop::collection::vec(0_i64..6, 0..3).prop_map(|ranks| Filter::one_of("rank", ranks)),
        owners.prop_map(|owners| {
            let owners = owners.iter().map(ToString::to_string);
            Filter::In(
                "platform_id",
                owners.map(|owner| Value::text(&owner)).collect(),
            )
        }),
        keys.prop_map(|keys| {
            let keys = keys.iter().map(|key| Value::text(&format!("{key:03}")));
            Filter::In("id", keys.collect())
        }),
        Just(Filter::In("amount", vec![Value::Null, Value::Int(1)])),
    ]
}

fn filters() -> impl Strategy<Value = Filter> {
    let all = || prop::collection::vec(part(), 0..3).prop_map(Filter::And);
    let any = prop::collection::vec(all(), 0..3).prop_map(Filter::Or);
    let parts = prop_oneof![6 => part(), 1 => any];
    prop::collection::vec(parts, 0..4).prop_map(Filter::And)
}

fn with_order(select: Select, order: u8) -> Select {
    match order {
        0 => select,
        1 => select.order_by("rank"),
        2 => select.order_by_desc("rank"),
        3 => select.order_by("platform_id").order_by("rank"),
        4 => select.order_by_desc("platform_id").order_by_desc("rank"),
        5 => select.order_by("rank").order_by_desc("platform_id"),
        _ => select.order_by_desc("id"),
    }
}

proptest! {
    #[test]
    fn every_plan_returns_the_result_of_the_naive_implementation(
        population in prop::collection::vec((0_u8..4, 0_i64..6, prop::option::of(0_i64..3)), 0..60),
        filter in filters(),
        order in 0_u8..7,
        after in prop::option::of(0_usize..60),
        limit in prop::option::of(1_u32..8),
    ) {
        let numbered = population.into_iter().enumerate();
        let rows: Vec<Row> = numbered.map(|(n, (owner, rank, amount))| row(n, owner, rank, amount)).collect();
        let mut select = with_order(Select::of(&ITEMS).filter(filter), order);
        select.after = after.and_then(|n| rows.get(n)).map(|row| position(&select, row));
        select.limit = limit;
        let store = memory::rows(Arc::new(ManualClock::at(Timestamp::EPOCH)));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(async {
            let mut tx = store.begin(Mode::Write).await?;
            for row in &rows {
                tx.insert(&ITEMS, row.clone()).await?;
            }
            // Half of the rows are updated, deleted and inserted again. Every index must follow these changes.
            let moved = Filter::eq("state", "busy");
            tx.update(&ITEMS, &moved, &[("rank", Value::Int(9))]).await?;
            tx.delete(&ITEMS, &moved).await?;
            for row in rows.iter().filter(|row| moved.matches(&ITEMS, row)) {
                tx.insert(&ITEMS, row.clone()).await?;
            }
            let mut found = Vec::new();
            let mut visit = |row: &dyn ReadRow| {
                found.push(ITEMS.copy_row(row)?);
                Ok(())
            };
            tx.select(&select, &mut visit).await?;
            Ok((found, tx.count(&ITEMS, &select.filter).await?))
        });
        let found: Result<(Vec<Row>, u64), StoreError> = found;
        let (found, count) = found.unwrap();
        prop_assert_eq!(found, naive(&rows, &select));
        let all = Select::of(&ITEMS).filter(select.filter.clone());
        prop_assert_eq!(count, naive(&rows, &all).len() as u64);
    }
}
