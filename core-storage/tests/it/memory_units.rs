//! Units of the memory engine do not see uncommitted changes of other units.

use std::collections::BTreeMap;
use std::sync::Arc;

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::Mode;
use core_domain::testing::ManualClock;
use core_storage::conformance::ITEMS;
use core_storage::{Filter, ReadRow, Row, RowStore, RowTx, Select, Value, memory};
use proptest::prelude::*;

type Model = BTreeMap<usize, Row>;

#[derive(Clone, Debug)]
enum Step {
    /// Inserts this number of rows from the first number on: all of them or none.
    Insert(usize, usize),
    /// Sets the rank of the rows of an owner.
    Update(u8, i64),
    /// Makes the rows of a rank active. Two active rows of one owner are a conflict.
    Activate(i64),
    Delete(i64),
    Commit,
    Rollback,
    /// A reader starts, and ends before the next step.
    Read,
    /// A reader starts, and ends after all steps.
    KeepReading,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_usize..40, 1_usize..6).prop_map(|(from, count)| Step::Insert(from, count)),
        2 => (0_u8..3, 0_i64..4).prop_map(|(owner, rank)| Step::Update(owner, rank)),
        2 => (0_i64..4).prop_map(Step::Activate),
        1 => (0_i64..4).prop_map(Step::Delete),
        2 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        2 => Just(Step::Read),
        1 => Just(Step::KeepReading),
    ];
    prop::collection::vec(step, 0..40)
}

fn at(column: &str) -> usize {
    ITEMS.column_index(column).unwrap()
}

fn row(n: usize) -> Row {
    let mut row = vec![Value::Null; ITEMS.columns.len()];
    row[at("id")] = Value::text(&format!("{n:03}"));
    row[at("platform_id")] = Value::text(&(n % 3).to_string());
    row[at("rank")] = Value::Int((n % 4) as i64);
    row[at("state")] = Value::text("idle");
    row[at("row_version")] = Value::Int(1);
    row
}

async fn all(tx: &mut dyn RowTx) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    let mut visit = |row: &dyn ReadRow| {
        rows.push(ITEMS.copy_row(row)?);
        Ok(())
    };
    tx.select(&Select::of(&ITEMS), &mut visit).await?;
    Ok(rows)
}

/// Counts the same rows through the indexes.
async fn by_rank(tx: &mut dyn RowTx) -> Result<usize, StoreError> {
    let mut count = 0;
    for rank in 0..4 {
        count += tx.count(&ITEMS, &Filter::eq("rank", rank)).await?;
    }
    Ok(usize::try_from(count).unwrap())
}

fn rows_of(model: &Model) -> Vec<Row> {
    model.values().cloned().collect()
}

/// Applies the step to the model. After a conflict the model is unchanged and the result is `false`.
fn expect(model: &mut Model, step: &Step) -> bool {
    let mut next = model.clone();
    match step {
        Step::Insert(from, count) => {
            for n in *from..from + count {
                if next.insert(n, row(n)).is_some() {
                    return false;
                }
            }
        }
        Step::Update(owner, rank) => {
            let owner = Value::text(&owner.to_string());
            for row in next
                .values_mut()
                .filter(|row| row[at("platform_id")] == owner)
            {
                row[at("rank")] = Value::Int(*rank);
            }
        }
        Step::Activate(rank) => {
            for row in next
                .values_mut()
                .filter(|row| row[at("rank")] == Value::Int(*rank))
            {
                row[at("state")] = Value::text("active");
            }
            let active = next
                .values()
                .filter(|row| row[at("state")] == Value::text("active"));
            let mut owners: Vec<_> = active.map(|row| row[at("platform_id")].clone()).collect();
            owners.sort();
            if owners.windows(2).any(|pair| pair[0] == pair[1]) {
                return false;
            }
        }
        Step::Delete(rank) => next.retain(|_, row| row[at("rank")] != Value::Int(*rank)),
        _ => {}
    }
    *model = next;
    true
}

async fn apply(tx: &mut dyn RowTx, step: &Step) -> Result<(), StoreError> {
    match step {
        Step::Insert(from, count) => {
            let rows = (*from..from + count).map(row).collect();
            tx.insert_many(&ITEMS, rows).await
        }
        Step::Update(owner, rank) => {
            let of = Filter::eq("platform_id", &*owner.to_string());
            tx.update(&ITEMS, &of, &[("rank", Value::Int(*rank))])
                .await?;
            Ok(())
        }
        Step::Activate(rank) => {
            let of = Filter::eq("rank", *rank);
            tx.update(&ITEMS, &of, &[("state", Value::text("active"))])
                .await?;
            Ok(())
        }
        Step::Delete(rank) => {
            tx.delete(&ITEMS, &Filter::eq("rank", *rank)).await?;
            Ok(())
        }
        _ => Ok(()),
    }
}

async fn run(store: &Arc<dyn RowStore>, steps: Vec<Step>) -> Result<(), StoreError> {
    let (mut committed, mut working) = (Model::new(), Model::new());
    let mut number = 0;
    let mut readers = Vec::new();
    let mut writer = store.begin(Mode::Write).await?;
    for step in steps {
        match &step {
            Step::Commit => {
                writer.commit().await?;
                committed.clone_from(&working);
                writer = store.begin(Mode::Write).await?;
            }
            Step::Rollback => {
                writer.rollback().await;
                working.clone_from(&committed);
                writer = store.begin(Mode::Write).await?;
            }
            Step::Read => {
                let mut reader = store.begin(Mode::Read).await?;
                assert_eq!(all(reader.as_mut()).await?, rows_of(&committed));
                assert_eq!(by_rank(reader.as_mut()).await?, committed.len());
                let seen = reader.commit_number(&ITEMS, None).unwrap();
                assert!(seen >= number, "commit numbers go up");
                number = seen;
            }
            Step::KeepReading => {
                let reader = store.begin(Mode::Read).await?;
                readers.push((reader, committed.clone()));
            }
            change => {
                let done = apply(writer.as_mut(), change).await;
                let conflict = matches!(done, Err(StoreError::Conflict { .. }));
                assert_eq!(!conflict, expect(&mut working, change), "{done:?}");
                assert!(writer.commit_number(&ITEMS, None).is_none());
            }
        }
        assert_eq!(all(writer.as_mut()).await?, rows_of(&working));
        assert_eq!(by_rank(writer.as_mut()).await?, working.len());
    }
    let mut seen: BTreeMap<u64, Model> = BTreeMap::new();
    for (mut reader, model) in readers {
        assert_eq!(all(reader.as_mut()).await?, rows_of(&model));
        let number = reader.commit_number(&ITEMS, None).unwrap();
        let same = seen.entry(number).or_insert_with(|| model.clone());
        assert_eq!(*same, model, "the same number is the same rows");
    }
    Ok(())
}

proptest! {
    #[test]
    fn units_see_only_the_last_commit_and_their_own_changes(steps in steps()) {
        let store = memory::rows(Arc::new(ManualClock::at(Timestamp::EPOCH)));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(&store, steps)).unwrap();
    }
}
