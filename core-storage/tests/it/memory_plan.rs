//! Whatever plan the memory engine chooses, the result is that of filter, sort and limit.

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
    set("owner", Value::text(&owner.to_string()));
    set("rank", Value::Int(rank));
    set("amount", amount.map_or(Value::Null, Value::Int));
    set("state", Value::text(["idle", "busy"][n % 2]));
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

fn filters() -> impl Strategy<Value = Filter> {
    let part = prop_oneof![
        (0_u8..4).prop_map(|owner| Filter::eq("owner", &*owner.to_string())),
        (0_i64..6).prop_map(|rank| Filter::eq("rank", rank)),
        (0_i64..6).prop_map(|rank| Filter::gt("rank", rank)),
        (0_i64..6).prop_map(|rank| Filter::ge("rank", rank)),
        (0_i64..6).prop_map(|rank| Filter::lt("rank", rank)),
        (0_i64..6).prop_map(|rank| Filter::le("rank", rank)),
        (0_i64..3).prop_map(|amount| Filter::ne("amount", amount)),
        Just(Filter::IsNull("amount")),
        Just(Filter::eq("state", "idle")),
        Just(Filter::Prefix("id", "0".to_owned())),
        (0_u8..4).prop_map(|owner| Filter::Prefix("owner", owner.to_string())),
    ];
    prop::collection::vec(part, 0..4).prop_map(Filter::And)
}

fn ordered(select: Select, order: u8) -> Select {
    match order {
        0 => select,
        1 => select.order_by("rank"),
        2 => select.order_by_desc("rank"),
        3 => select.order_by("owner").order_by("rank"),
        4 => select.order_by_desc("owner").order_by_desc("rank"),
        5 => select.order_by("rank").order_by_desc("owner"),
        _ => select.order_by_desc("id"),
    }
}

proptest! {
    #[test]
    fn every_plan_gives_the_naive_result(
        population in prop::collection::vec((0_u8..4, 0_i64..6, prop::option::of(0_i64..3)), 0..60),
        filter in filters(),
        order in 0_u8..7,
        after in prop::option::of(0_usize..60),
        limit in prop::option::of(1_u32..8),
    ) {
        let numbered = population.into_iter().enumerate();
        let rows: Vec<Row> = numbered.map(|(n, (owner, rank, amount))| row(n, owner, rank, amount)).collect();
        let mut select = ordered(Select::of(&ITEMS).filter(filter), order);
        select.after = after.and_then(|n| rows.get(n)).map(|row| position(&select, row));
        select.limit = limit;
        let store = memory::rows(Arc::new(ManualClock::at(Timestamp::EPOCH)));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(async {
            let mut tx = store.begin(Mode::Write).await?;
            for row in &rows {
                tx.insert(&ITEMS, row.clone()).await?;
            }
            // Half of the rows are updated, deleted and inserted again, which must maintain every index.
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
            Ok(found)
        });
        let found: Result<Vec<Row>, StoreError> = found;
        prop_assert_eq!(found.unwrap(), naive(&rows, &select));
    }
}
