//! Tests that the work of a query grows with its result and not with the number of stored rows.

use crate::filter::Filter;
use crate::query::Select;
use crate::table::{Column, Index as TableIndex, IndexPredicate, Table, Type, Unique, VERSION};
use crate::value::Value;

use super::index::SharedRow;
use super::plan::Query;
use super::rows::Rows;
use super::scan::{self, visited};

const fn column(name: &'static str, kind: Type) -> Column {
    Column {
        name,
        kind,
        nullable: false,
    }
}

static THINGS: Table = Table {
    name: "things",
    columns: &[
        column("id", Type::Text),
        column("owner", Type::Text),
        column("slug", Type::Text),
        column("state", Type::Text),
        column("created_at", Type::Int),
        column(VERSION, Type::Int),
    ],
    uniques: &[Unique {
        name: "slug",
        columns: &["slug"],
        predicates: &[IndexPredicate::Is("state", "ready")],
    }],
    indexes: &[
        TableIndex::on(&["created_at"]),
        TableIndex::on(&["owner", "created_at"]),
        TableIndex::on(&["state", "created_at"]),
    ],
    parent: None,
    append_only: false,
    archive: None,
};

/// Returns a table in which every tenth thing belongs to `ada`, the others to `bob`. All things are ready.
fn things(count: i64) -> Rows {
    let mut rows = Rows::new(&THINGS);
    for n in 0..count {
        let row: SharedRow = [
            Value::text(&format!("thing-{n:07}")),
            Value::text(if n % 10 == 0 { "ada" } else { "bob" }),
            Value::text(&format!("slug-{n}")),
            Value::text("ready"),
            Value::Int(n),
            Value::Int(1),
        ]
        .into();
        rows.insert_unchecked(&row);
    }
    rows
}

fn work(rows: &Rows, select: &Select) -> (usize, usize) {
    visited::take();
    let found = scan::collect(rows, &Query::new(select));
    (found.len(), visited::take())
}

fn select() -> Select {
    Select::of(&THINGS)
}

#[test]
fn the_number_of_visited_rows_does_not_grow_with_the_table() {
    let small = things(100);
    let large = things(10_000);
    let ready = || Filter::eq("state", "ready");
    let ada = || Filter::eq("owner", "ada");
    let claim = select().filter(ready()).order_by("created_at").limit(5);
    let mut page = select().order_by_desc("created_at").limit(5);
    page.after = Some(vec![Value::Int(50), Value::text("thing-0000050")]);
    let either = Filter::Or(vec![ada(), Filter::eq("id", "thing-0000007")]);
    let listed = select().filter(either).filter(Filter::NotNull("slug"));
    let queries = [
        ("a claim", claim.clone(), 5, 5),
        (
            "a claim of what is due",
            claim.filter(Filter::le("created_at", 60)),
            5,
            5,
        ),
        ("a page", page, 5, 5),
        (
            "a list of one owner",
            select().filter(ada()).order_by_desc("created_at").limit(5),
            5,
            5,
        ),
        (
            "a list by either of two columns",
            listed.order_by_desc("created_at").limit(5),
            5,
            6,
        ),
        (
            "by some keys",
            select().filter(Filter::one_of(
                "id",
                ["thing-0000003", "none", "thing-0000001"],
            )),
            2,
            2,
        ),
        (
            "by a unique column",
            select()
                .filter(Filter::eq("slug", "slug-7"))
                .filter(ready())
                .order_by_desc("created_at")
                .limit(1),
            1,
            1,
        ),
    ];
    for (name, query, rows, visits) in queries {
        assert_eq!(work(&small, &query), (rows, visits), "{name}");
        assert_eq!(work(&large, &query), (rows, visits), "{name} of many");
    }
}

#[test]
fn counting_all_rows_visits_none() {
    let rows = things(1_000);
    visited::take();
    assert_eq!(
        scan::count(&rows, &Query::matching(&THINGS, &Filter::all())),
        1_000
    );
    assert_eq!(visited::take(), 0);
}
