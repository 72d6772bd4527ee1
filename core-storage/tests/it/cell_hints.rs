//! Queries that name no platform, and need only the cells that can have matching rows: they are answered while another cell
//! cannot be reached.

use std::sync::Arc;

use core_domain::billing::usage::UsageTotal;
use core_domain::kernel::{PlatformId, StoreError, Timestamp};
use core_domain::port::Mode;
use core_domain::provisioning::JobKey;
use core_domain::testing::named_uuid;
use core_storage::cells::CellRows;
use core_storage::fault::FaultStore;
use core_storage::{Filter, ReadRow, Row, RowStore, Select, Table, Type, Value};

use super::cells::{databases, faulty, over, table};

/// A platform in the first cell beside home, which cannot be reached, and one in the second.
const PLATFORMS: [&str; 2] = ["p-1", "p-5"];

/// Returns a row of the table with these values. Its other values are empty.
fn row(table: &Table, values: &[(&str, &str)]) -> Row {
    let value = |column: &core_storage::Column| {
        let given = values.iter().find(|(name, _)| *name == column.name);
        match (given, column.kind) {
            (Some((_, text)), _) => Value::text(text),
            (None, _) if column.nullable => Value::Null,
            (None, Type::Int) => Value::Int(1),
            (None, Type::Bool) => Value::Bool(false),
            (None, Type::Text) => Value::text("x"),
            (None, Type::Uuid) => Value::text(&named_uuid("x")),
            (None, Type::Json) => Value::text("null"),
        }
    };
    table.columns.iter().map(value).collect()
}

/// Inserts a row for each of the two platforms.
async fn insert_two(cells: &CellRows, name: &str, values: impl Fn(&str) -> Vec<(&str, String)>) {
    for id in PLATFORMS {
        let values = values(id);
        let values: Vec<_> = values.iter().map(|(name, text)| (*name, &**text)).collect();
        let mut unit = cells.begin(Mode::Write).await.unwrap();
        unit.insert(table(name), row(table(name), &values))
            .await
            .unwrap();
        unit.commit().await.unwrap();
    }
}

/// Returns the number of rows that match.
async fn count(cells: &CellRows, name: &str, filter: Filter) -> Result<usize, StoreError> {
    let mut unit = cells.begin(Mode::Read).await?;
    let mut rows = 0;
    let mut visit = |_: &dyn ReadRow| {
        rows += 1;
        Ok(())
    };
    let select = Select::of(table(name)).filter(filter);
    let read = unit.select(&select, &mut visit).await;
    unit.rollback().await;
    read.map(|()| rows)
}

/// Checks that a query which names the platform that can be reached finds its row, and that one which names the other fails.
async fn finds_only_the_reached(cells: &CellRows, name: &str, filter: impl Fn(&str) -> Filter) {
    let [away, reached] = PLATFORMS.map(filter);
    let found = count(cells, name, reached.clone()).await;
    assert_eq!(found.unwrap(), 1, "{reached:?}");
    let failed = count(cells, name, away.clone()).await;
    let is_unavailable = matches!(failed, Err(StoreError::Unavailable(_)));
    assert!(is_unavailable, "{away:?}: {failed:?}");
}

fn organization(platform: &str) -> String {
    named_uuid(&format!("organization of {platform}"))
}

/// Creates a platform in each of two cells, for an organization each.
async fn with_platforms() -> (CellRows, [FaultStore; 3]) {
    let (cells, faults, _) = faulty().await;
    insert_two(&cells, "platforms", |id| {
        vec![
            ("id", named_uuid(id)),
            ("slug", id.to_owned()),
            ("organization_id", organization(id)),
        ]
    })
    .await;
    (cells, faults)
}

fn with_slug(slug: &str) -> Filter {
    Filter::eq("slug", slug).and(Filter::IsNull("deleted_at"))
}

fn of_organization(platform: &str) -> Filter {
    Filter::eq("organization_id", &*organization(platform))
}

#[tokio::test]
async fn a_platform_is_found_by_its_slug_while_another_cell_cannot_be_reached() {
    let (cells, faults) = with_platforms().await;
    faults[1].fail_from_call(1);
    finds_only_the_reached(&cells, "platforms", with_slug).await;
    assert_eq!(
        count(&cells, "platforms", with_slug("free")).await.unwrap(),
        0
    );
    // A deleted platform can have the same slug.
    let any = count(&cells, "platforms", Filter::eq("slug", "p-5")).await;
    assert!(matches!(any, Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn the_platforms_of_an_organization_are_listed_while_another_cell_cannot_be_reached() {
    let (cells, faults) = with_platforms().await;
    faults[1].fail_from_call(1);
    finds_only_the_reached(&cells, "platforms", of_organization).await;
    let none = Filter::eq("organization_id", &*named_uuid("without platforms"));
    assert_eq!(count(&cells, "platforms", none).await.unwrap(), 0);
    // An organization with platforms in both cells.
    let both = Filter::one_of(
        "organization_id",
        PLATFORMS.map(|id| Value::text(&organization(id))),
    );
    let both = count(&cells, "platforms", both).await;
    assert!(matches!(both, Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn an_organization_has_platforms_in_several_cells_postgres() {
    let (rows, _databases) = databases().await;
    let cells = over(&rows).await.unwrap();
    insert_two(&cells, "platforms", |id| {
        vec![
            ("id", named_uuid(id)),
            ("slug", id.to_owned()),
            ("organization_id", organization("both")),
        ]
    })
    .await;
    assert_eq!(
        count(&cells, "platforms", of_organization("both"))
            .await
            .unwrap(),
        2
    );
    assert_eq!(
        count(&cells, "platforms", of_organization("other"))
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        count(&cells, "platforms", with_slug("p-1")).await.unwrap(),
        1
    );
}

#[tokio::test]
async fn a_platform_whose_organization_is_not_known_is_found_by_its_organization() {
    let (cells, _, inner) = faulty().await;
    let platform = row(
        table("platforms"),
        &[
            ("id", &named_uuid("p-1")),
            ("slug", "old"),
            ("organization_id", &organization("p-1")),
        ],
    );
    // As an earlier server did.
    write(&inner[1], table("platforms"), platform).await;
    let directory = &[("platform_id", &*named_uuid("p-1")), ("cell", "a")];
    write(
        &inner[0],
        table("cell_platforms"),
        row(table("cell_platforms"), directory),
    )
    .await;
    let value = &[("id", "platforms.slug 3:old")];
    write(
        &inner[0],
        table("cell_unique_values"),
        row(table("cell_unique_values"), value),
    )
    .await;
    assert_eq!(
        count(&cells, "platforms", of_organization("p-1"))
            .await
            .unwrap(),
        1
    );
    assert_eq!(
        count(&cells, "platforms", with_slug("old")).await.unwrap(),
        1
    );
}

async fn write(rows: &Arc<dyn RowStore>, table: &'static Table, row: Row) {
    let mut unit = rows.begin(Mode::Write).await.unwrap();
    unit.insert(table, row).await.unwrap();
    unit.commit().await.unwrap();
}

fn total_of(platform: &str) -> String {
    let platform = PlatformId::parse(&named_uuid(platform)).unwrap();
    UsageTotal::id_of(&platform, Timestamp::EPOCH)
}

#[tokio::test]
async fn usage_is_found_by_its_id_or_subscription_while_another_cell_cannot_be_reached() {
    let (cells, faults) = with_platforms().await;
    insert_two(&cells, "billing_subscriptions", |id| {
        vec![
            ("id", named_uuid(&format!("subscription of {id}"))),
            ("customer_id", named_uuid(&format!("customer of {id}"))),
            ("platform_id", named_uuid(id)),
        ]
    })
    .await;
    insert_two(&cells, "usage_totals", |id| {
        vec![("id", total_of(id)), ("platform_id", named_uuid(id))]
    })
    .await;
    insert_two(&cells, "usage_periods", |id| {
        vec![
            ("id", format!("{}:1", named_uuid(id))),
            ("platform_id", named_uuid(id)),
            (
                "subscription_id",
                named_uuid(&format!("subscription of {id}")),
            ),
            ("customer_id", named_uuid(&format!("customer of {id}"))),
        ]
    })
    .await;
    faults[1].fail_from_call(1);
    finds_only_the_reached(&cells, "usage_totals", |id| {
        Filter::eq("id", &*total_of(id))
    })
    .await;
    for (column, owner) in [
        ("subscription_id", "subscription"),
        ("customer_id", "customer"),
    ] {
        finds_only_the_reached(&cells, "usage_periods", |id| {
            Filter::eq(column, &*named_uuid(&format!("{owner} of {id}")))
        })
        .await;
    }
}

#[tokio::test]
async fn a_job_is_found_by_its_idempotency_key_while_another_cell_cannot_be_reached() {
    let (cells, faults) = with_platforms().await;
    let key = |platform: &str| {
        let platform = PlatformId::parse(&named_uuid(platform)).unwrap();
        JobKey::new("report", Some(&platform), "may")
            .as_str()
            .to_owned()
    };
    insert_two(&cells, "jobs", |id| {
        vec![
            ("id", named_uuid(&format!("job of {id}"))),
            ("lane", format!("platform:{}", named_uuid(id))),
            ("platform_id", named_uuid(id)),
            ("idempotency_key", key(id)),
        ]
    })
    .await;
    faults[1].fail_from_call(1);
    finds_only_the_reached(&cells, "jobs", |id| {
        Filter::one_of("idempotency_key", ["may", &*key(id)])
    })
    .await;
    let without_platform = JobKey::new("report", None, "may").as_str().to_owned();
    let none = Filter::one_of("idempotency_key", ["may", &*without_platform]);
    assert_eq!(count(&cells, "jobs", none).await.unwrap(), 0);
}
