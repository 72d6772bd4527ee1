//! Tests of each kind of change.

use core_storage::Type::{Bool, Int, Json, Text};
use core_storage::{Column, Index, IndexPredicate, Table, Unique};

use super::support::{Change, optional_column, required_column, things, unique};

const NAME: Column = required_column("name", Text);
const INSERT: &str =
    "INSERT INTO things (id, name, row_version) VALUES ('a', 'A', 1), ('b', 'B', 2)";
const READ: &str = "SELECT id || ':' || name || ':' || row_version FROM things ORDER BY id";
const ROWS: &[&str] = &["a:A:1", "b:B:2"];

/// Checks a change of the indexes of a table that keeps its rows.
async fn check_indexes(before: &'static Table, after: &'static Table) {
    let change = Change {
        before: &[before],
        after: &[after],
        given: &[],
        insert: INSERT,
        read: READ,
        rows: ROWS,
    };
    change.check().await;
}

#[tokio::test]
async fn a_described_table_is_created() {
    let old = things(&[NAME], &[], &[]);
    let new = Box::leak(Box::new(Table {
        name: "others",
        columns: things(
            &[required_column("flag", Bool), optional_column("data", Json)],
            &[],
            &[],
        )
        .columns,
        uniques: &[],
        indexes: const { &[Index::on(&["flag"])] },
        parent: None,
        append_only: false,
        archive: None,
    }));
    let change = Change {
        before: &[old],
        after: &[old, new],
        given: &[],
        insert: INSERT,
        read: READ,
        rows: ROWS,
    };
    change.check().await;
}

#[tokio::test]
async fn a_table_that_is_not_described_is_dropped() {
    let kept = things(&[NAME], &[], &[]);
    let old = Box::leak(Box::new(Table {
        name: "others",
        columns: kept.columns,
        uniques: &[],
        indexes: const { &[Index::on(&["name"])] },
        parent: None,
        append_only: false,
        archive: None,
    }));
    let change = Change {
        before: &[kept, old],
        after: &[kept],
        given: &[],
        insert: INSERT,
        read: READ,
        rows: ROWS,
    };
    change.check().await;
}

#[tokio::test]
async fn nullable_columns_are_added_as_null() {
    let change = Change {
        before: &[things(&[NAME], &[], &[])],
        after: &[things(
            &[
                optional_column("flag", Bool),
                NAME,
                optional_column("data", Json),
                optional_column("size", Int),
            ],
            &[],
            &[],
        )],
        given: &[],
        insert: INSERT,
        read: "SELECT id FROM things WHERE flag IS NULL AND data IS NULL AND size IS NULL ORDER BY id",
        rows: &["a", "b"],
    };
    change.check().await;
}

#[tokio::test]
async fn required_columns_are_added_with_their_default_which_is_false_for_booleans() {
    let after = things(
        &[
            NAME,
            required_column("flag", Bool),
            required_column("on", Bool),
            required_column("size", Int),
            required_column("word", Text),
            required_column("data", Json),
        ],
        &[],
        &[&["size"]],
    );
    let change = Change {
        before: &[things(&[NAME], &[], &[])],
        after: &[after],
        given: &[
            "things.on=true",
            "things.size=-7",
            "things.word=it's \\ =",
            "things.data={\"a\": [1]}",
        ],
        insert: INSERT,
        read: "SELECT id || name || size || word || data FROM things WHERE NOT flag AND \"on\" ORDER BY id",
        rows: &["aA-7it's \\ ={\"a\":[1]}", "bB-7it's \\ ={\"a\":[1]}"],
    };
    change.check().await;
}

#[tokio::test]
async fn columns_are_dropped_with_their_indexes() {
    let flag = required_column("flag", Bool);
    let size = required_column("size", Int);
    let sized = unique("sized", &["name"], &[IndexPredicate::IsNull("note")]);
    let before = things(
        &[flag, NAME, size, optional_column("note", Text)],
        &[sized],
        &[&["size", "name"], &["name"]],
    );
    let change = Change {
        before: &[before],
        after: &[things(&[NAME], &[], &[&["name"]])],
        given: &[],
        insert: "INSERT INTO things VALUES ('a', TRUE, 'A', 1, NULL, 1), ('b', FALSE, 'B', 2, 'n', 2)",
        read: READ,
        rows: ROWS,
    };
    change.check().await;
}

#[tokio::test]
async fn a_column_that_becomes_required_has_its_nulls_replaced_by_the_default() {
    let change = Change {
        before: &[things(
            &[optional_column("note", Text), optional_column("flag", Bool)],
            &[],
            &[&["note"]],
        )],
        after: &[things(
            &[required_column("note", Text), required_column("flag", Bool)],
            &[],
            &[&["note"]],
        )],
        given: &["things.note=none"],
        insert: "INSERT INTO things VALUES ('a', NULL, TRUE, 1), ('b', 'B', NULL, 2)",
        read: "SELECT id || note || CASE WHEN flag THEN 1 ELSE 0 END FROM things ORDER BY id",
        rows: &["anone1", "bB0"],
    };
    change.check().await;
}

#[tokio::test]
async fn a_column_that_becomes_nullable_keeps_its_values() {
    let change = Change {
        before: &[things(&[NAME], &[unique("name", &["name"], &[])], &[])],
        after: &[things(
            &[optional_column("name", Text)],
            &[unique("name", &["name"], &[])],
            &[],
        )],
        given: &[],
        insert: INSERT,
        read: READ,
        rows: ROWS,
    };
    change.check().await;
}

#[tokio::test]
async fn a_column_of_another_type_keeps_its_values() {
    let of = |kind| [optional_column("value", kind)];
    let cases = [
        (Int, Bool, "0", "2", "NULL", ["false", "true", "null"]),
        (Int, Text, "-5", "70", "NULL", ["-5", "70", "null"]),
        (Text, Int, "'-5'", "'70'", "NULL", ["-5", "70", "null"]),
        (
            Text,
            Bool,
            "'false'",
            "'true'",
            "NULL",
            ["false", "true", "null"],
        ),
        (
            Bool,
            Text,
            "FALSE",
            "TRUE",
            "NULL",
            ["false", "true", "null"],
        ),
        (Bool, Int, "FALSE", "TRUE", "NULL", ["0", "1", "null"]),
    ];
    for (from, to, first, second, third, rows) in cases {
        let insert = format!(
            "INSERT INTO things VALUES ('a', {first}, 1), ('b', {second}, 1), ('c', {third}, 1)"
        );
        let read = match to {
            Bool => {
                "SELECT CASE WHEN value THEN 'true' WHEN NOT value THEN 'false' ELSE 'null' END \
                     FROM things ORDER BY id"
            }
            _ => "SELECT COALESCE(CAST(value AS TEXT), 'null') FROM things ORDER BY id",
        };
        let change = Change {
            before: &[things(&of(from), &[], &[&["value"]])],
            after: &[things(&of(to), &[], &[&["value"]])],
            given: &[],
            insert: &insert,
            read,
            rows: &rows,
        };
        change.check().await;
    }
}

#[tokio::test]
async fn type_and_nullability_change_together() {
    let change = Change {
        before: &[things(&[optional_column("value", Int)], &[], &[])],
        after: &[things(
            &[required_column("value", Text)],
            &[],
            &[&["value"]],
        )],
        given: &["things.value=none"],
        insert: "INSERT INTO things VALUES ('a', 5, 1), ('b', NULL, 1)",
        read: "SELECT value FROM things ORDER BY id",
        rows: &["5", "none"],
    };
    change.check().await;
}

#[tokio::test]
async fn indexes_are_created_and_dropped() {
    check_indexes(
        things(&[NAME], &[], &[&["name"]]),
        things(&[NAME], &[], &[&["row_version"], &["row_version", "name"]]),
    )
    .await;
}

#[tokio::test]
async fn unique_indexes_are_created_dropped_and_replaced() {
    let name = |columns| unique("name", columns, &[]);
    let (one, two): ([Unique; 1], [Unique; 1]) = ([name(&["name"])], [name(&["name", "id"])]);
    for (before, after) in [(&[][..], &one[..]), (&one, &two), (&two, &[])] {
        check_indexes(things(&[NAME], before, &[]), things(&[NAME], after, &[])).await;
    }
}

#[tokio::test]
async fn predicates_of_unique_indexes_are_replaced() {
    let with = |predicates| [unique("name", &["row_version"], predicates)];
    let cases: [&'static [IndexPredicate]; 4] = [
        &[],
        &[IndexPredicate::Is("name", "it's")],
        &[IndexPredicate::OneOf("name", &["x", "y"])],
        &[
            IndexPredicate::OneOf("name", &["x"]),
            IndexPredicate::IsNull("name"),
        ],
    ];
    for pair in cases.windows(2) {
        let [before, after] = [pair[0], pair[1]].map(|p| things(&[NAME], &with(p), &[]));
        check_indexes(before, after).await;
    }
}

#[tokio::test]
async fn predicates_of_other_indexes_are_replaced() {
    let only = |predicates: &'static [IndexPredicate]| -> &'static Table {
        let table = things(&[NAME], &[], &[]);
        Box::leak(Box::new(Table {
            name: table.name,
            columns: table.columns,
            uniques: &[],
            indexes: vec![Index::on(&["row_version"]).filter_by(predicates)].leak(),
            parent: None,
            append_only: false,
            archive: None,
        }))
    };
    let cases: [&'static [IndexPredicate]; 4] = [
        &[],
        &[IndexPredicate::Is("name", "it's")],
        &[IndexPredicate::OneOf("name", &["x", "y"])],
        &[IndexPredicate::IsNull("name")],
    ];
    for pair in cases.windows(2) {
        check_indexes(only(pair[0]), only(pair[1])).await;
        check_indexes(only(pair[1]), only(pair[0])).await;
    }
}

#[tokio::test]
async fn several_tables_change_in_one_migration() {
    let other = |columns| -> &'static Table {
        Box::leak(Box::new(Table {
            name: "others",
            columns: things(columns, &[], &[]).columns,
            uniques: &[],
            indexes: const { &[Index::on(&["name"])] },
            parent: None,
            append_only: false,
            archive: None,
        }))
    };
    let change = Change {
        before: &[things(&[NAME], &[], &[]), other(&[NAME])],
        after: &[
            things(&[NAME, required_column("flag", Bool)], &[], &[]),
            other(&[NAME, optional_column("flag", Bool)]),
        ],
        given: &[],
        insert: INSERT,
        read: READ,
        rows: ROWS,
    };
    change.check().await;
}

#[tokio::test]
async fn triggers_protect_the_rows_of_a_table_while_it_is_append_only() {
    let with = |append_only, columns| -> &'static Table {
        Box::leak(Box::new(Table {
            append_only,
            ..*things(columns, &[], &[])
        }))
    };
    let nullable = [optional_column("name", Text)];
    for (before, after, given) in [
        (with(false, &[NAME]), with(true, &[NAME]), &[][..]),
        (with(true, &[NAME]), with(false, &[NAME]), &[]),
        // The change rebuilds the table in SQLite and updates rows in Postgres.
        (
            with(true, &nullable),
            with(true, &[NAME]),
            &["things.name=x"],
        ),
        (with(true, &[NAME]), with(true, &nullable), &[]),
    ] {
        let change = Change {
            before: &[before],
            after: &[after],
            given,
            insert: INSERT,
            read: READ,
            rows: ROWS,
        };
        change.check().await;
    }
}
