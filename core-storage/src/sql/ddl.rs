//! The SQL that creates a table from its description.

use core_domain::kernel::hex;
use sha2::{Digest, Sha256};

pub use super::dialect::Dialect;
use crate::cells::tables::HIDDEN;
use crate::table::{ArchiveBound, Column, IndexPredicate, PLATFORM, Table, Type, Unique};

/// Returns the statements that create a table and its indexes. With `if_missing` they do not change existing objects.
#[must_use]
pub fn create(table: &Table, dialect: Dialect, if_missing: bool) -> String {
    let mut text = create_table(table, table.name, dialect, if_missing);
    for index in indexes(table) {
        text.push_str(&index.create(if_missing));
    }
    for guard in guards(table, dialect) {
        if if_missing {
            text.push_str(&guard.drop);
        }
        text.push_str(&guard.create);
    }
    text
}

/// A trigger that makes changes or deletions of rows fail, even outside of this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectionTrigger {
    /// The name of the trigger.
    pub name: String,
    /// The statements that create the trigger and its function.
    pub create: String,
    /// The statement that drops the trigger if it exists.
    pub drop: String,
}

/// Returns the triggers of an append-only table; no triggers for other tables.
#[must_use]
pub fn guards(table: &Table, dialect: Dialect) -> Vec<ProtectionTrigger> {
    if !table.append_only {
        return Vec::new();
    }
    guards_of(table, dialect)
}

/// Returns the triggers that the table has while it is append-only. They allow the deletion of archived rows, and of rows of
/// platforms that another cell serves.
#[must_use]
pub fn guards_of(table: &Table, dialect: Dialect) -> Vec<ProtectionTrigger> {
    let why = format!("rows of {} are never changed or deleted", table.name);
    match (dialect, table.archive) {
        (Dialect::Sqlite, archive) => {
            let key = quote_ident(table.key());
            let raise =
                |why: &str| format!(" BEGIN SELECT RAISE(ABORT, {}); END;\n", text_literal(why));
            let delete = archive.map_or_else(
                || raise(&why),
                |archive| {
                    let kept = first_kept_key(archive);
                    let served = and_is_served(table, dialect);
                    let unless = format!(" WHEN OLD.{key} >= {kept}{served}");
                    format!("{unless}{}", raise(&format!("{why}{UNTIL_ARCHIVED}")))
                },
            );
            vec![
                trigger(table, dialect, "refuses_update", "UPDATE", &raise(&why)),
                trigger(table, dialect, "refuses_delete", "DELETE", &delete),
            ]
        }
        (Dialect::Postgres, None) => vec![refuse_statement(table, "UPDATE OR DELETE OR TRUNCATE")],
        (Dialect::Postgres, Some(archive)) => vec![
            refuse_statement(table, "UPDATE OR TRUNCATE"),
            refuse_unarchived_rows(table, archive),
        ],
    }
}

/// The end of the message about an archived table.
const UNTIL_ARCHIVED: &str = " before they are archived";

/// Returns an expression for the smallest key of the rows that are not archived.
fn first_kept_key(archive: ArchiveBound) -> String {
    let (column, archives) = (quote_ident(archive.column), quote_ident(archive.table));
    format!("(SELECT COALESCE(MAX({column}), '') FROM {archives})")
}

/// Returns a condition that adds to another one that no other cell serves the platform of the old row. Returns an empty text
/// if rows belong to no platform.
fn and_is_served(table: &Table, dialect: Dialect) -> String {
    let has = |column| table.column(column).is_ok();
    let hidden = quote_ident(PLATFORM);
    let is_of_row = match (has("chain"), has(PLATFORM)) {
        (true, _) => format!(
            "{} || {hidden} = OLD.\"chain\"",
            text_literal(PLATFORM_CHAIN)
        ),
        (false, true) => format!("{hidden} = OLD.{hidden}{}", as_text(dialect)),
        (false, false) => return String::new(),
    };
    let from = quote_ident(HIDDEN.name);
    format!(" AND NOT EXISTS (SELECT 1 FROM {from} WHERE {is_of_row})")
}

/// Returns the cast of a column to text, which the database may store as a UUID.
const fn as_text(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "",
        Dialect::Postgres => "::text COLLATE \"C\"",
    }
}

/// The start of the name of a platform's chain, see [`AuditChain`](core_domain::shared::AuditChain).
const PLATFORM_CHAIN: &str = "platform:";

fn trigger(
    table: &Table,
    dialect: Dialect,
    suffix: &str,
    event: &str,
    action: &str,
) -> ProtectionTrigger {
    let name = format!("{}_{suffix}", table.name);
    let (quoted, of) = (quote_ident(&name), quote_ident(table.name));
    let on = match dialect {
        Dialect::Sqlite => String::new(),
        Dialect::Postgres => format!(" ON {of}"),
    };
    ProtectionTrigger {
        create: format!("CREATE TRIGGER {quoted} BEFORE {event} ON {of}{action}"),
        drop: format!("DROP TRIGGER IF EXISTS {quoted}{on};\n"),
        name,
    }
}

/// Returns the trigger of Postgres that refuses these statements.
fn refuse_statement(table: &Table, events: &str) -> ProtectionTrigger {
    let action = " FOR EACH STATEMENT EXECUTE FUNCTION \"refuse_change\"();\n";
    let trigger = trigger(table, Dialect::Postgres, "refuses_change", events, action);
    ProtectionTrigger {
        create: format!("{REFUSE_CHANGE}{}", trigger.create),
        ..trigger
    }
}

/// Returns the trigger of Postgres that refuses to delete rows that are not archived. The condition of a trigger cannot
/// read another table, so the function checks it.
fn refuse_unarchived_rows(table: &Table, archive: ArchiveBound) -> ProtectionTrigger {
    let (key, bound) = (quote_ident(table.key()), first_kept_key(archive));
    let (text, served) = (
        as_text(Dialect::Postgres),
        and_is_served(table, Dialect::Postgres),
    );
    let function = quote_ident(&format!("{}_refuse_delete", table.name));
    let action = format!(" FOR EACH ROW EXECUTE FUNCTION {function}();\n");
    let trigger = trigger(
        table,
        Dialect::Postgres,
        "refuses_delete",
        "DELETE",
        &action,
    );
    ProtectionTrigger {
        create: format!(
            "CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF OLD.{key}{text} >= {bound}{served} THEN RAISE EXCEPTION \
             'rows of % are never changed or deleted{UNTIL_ARCHIVED}', TG_TABLE_NAME; END IF; RETURN OLD; END $$;\n{}",
            trigger.create
        ),
        ..trigger
    }
}

/// The function that the triggers of Postgres call.
const REFUSE_CHANGE: &str = "CREATE OR REPLACE FUNCTION \"refuse_change\"() RETURNS trigger LANGUAGE plpgsql AS \
     $$ BEGIN RAISE EXCEPTION 'rows of % are never changed or deleted', TG_TABLE_NAME; END $$;\n";

/// Returns the statement that creates a table without its indexes. The name may differ from the name in the
/// description.
#[must_use]
pub fn create_table(table: &Table, name: &str, dialect: Dialect, if_missing: bool) -> String {
    let definition = |column: &Column| {
        let key = if column.name == table.key() {
            " PRIMARY KEY"
        } else {
            ""
        };
        format!(
            "    {}{key}{}",
            column_definition(column, dialect),
            check(column, dialect)
        )
    };
    let columns: Vec<String> = table.columns.iter().map(definition).collect();
    let strict = match dialect {
        Dialect::Sqlite => " STRICT",
        Dialect::Postgres => "",
    };
    format!(
        "CREATE TABLE {}{} (\n{}\n){strict};\n",
        guard(if_missing),
        quote_ident(name),
        columns.join(",\n")
    )
}

/// Returns statements for a database of an early server, which stores UUIDs as text.
#[cfg(feature = "postgres-sql")]
pub(crate) fn with_text_ids(statements: &str) -> String {
    let text = Dialect::Postgres.type_name(Type::Text);
    let uuid = format!("\" {}", Dialect::Postgres.type_name(Type::Uuid));
    statements.replace(&uuid, &format!("\" {text}"))
}

/// Returns the definition of a column: its name, type and nullability.
#[must_use]
pub fn column_definition(column: &Column, dialect: Dialect) -> String {
    let null = if column.nullable { "" } else { " NOT NULL" };
    let of = dialect.type_name(column.kind);
    format!("{} {of}{null}", quote_ident(column.name))
}

/// Returns the constraint that limits an integer column to booleans if the database has no boolean type. Returns an
/// empty text otherwise.
#[must_use]
pub fn check(column: &Column, dialect: Dialect) -> String {
    match (column.kind, dialect) {
        (Type::Bool, Dialect::Sqlite) => format!(" CHECK ({} IN (0, 1))", quote_ident(column.name)),
        _ => String::new(),
    }
}

/// An index, in the syntax that both databases share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// The name of the index, unique in the database.
    pub name: String,
    /// The first words: `CREATE INDEX` or `CREATE UNIQUE INDEX`.
    create: &'static str,
    /// The rest of the statement: `ON ..`.
    definition: String,
}

impl Index {
    /// Returns the statement that creates the index.
    #[must_use]
    pub fn create(&self, if_missing: bool) -> String {
        let (create, name) = (self.create, quote_ident(&self.name));
        format!(
            "{create} {}{name} {};\n",
            guard(if_missing),
            self.definition
        )
    }
}

/// Returns the indexes of a table: its unique indexes and its declared indexes. Adds one on the parent column, unless a
/// declared index over all rows starts with it.
#[must_use]
pub fn indexes(table: &Table) -> Vec<Index> {
    let uniques = table
        .uniques
        .iter()
        .map(|unique| unique_index(table, unique));
    let mut indexes: Vec<Index> = uniques.collect();
    let declared = table.indexes.iter();
    indexes.extend(declared.map(|one| index(table, one.columns, one.includes, one.predicates)));
    let parent = table.parent.as_ref();
    let serves = |parent: &&'static str| {
        let full = table
            .indexes
            .iter()
            .filter(|index| index.predicates.is_empty());
        full.map(|index| index.columns.first())
            .any(|first| first == Some(parent))
    };
    if let Some(parent) = parent.filter(|parent| !serves(parent)) {
        indexes.push(index(table, std::slice::from_ref(parent), &[], &[]));
    }
    number_duplicates(&mut indexes);
    indexes
}

/// Numbers indexes with the same name, from the second on. Indexes on the same columns may be limited to different
/// values of one column.
fn number_duplicates(indexes: &mut [Index]) {
    let names: Vec<String> = indexes.iter().map(|index| index.name.clone()).collect();
    for (at, index) in indexes.iter_mut().enumerate() {
        let before = names.iter().take(at).filter(|name| **name == index.name);
        let before = before.count();
        if before > 0 {
            index.name = format!("{}_{}", index.name, before + 1);
        }
    }
}

fn index(
    table: &Table,
    columns: &[&'static str],
    includes: &[&'static str],
    predicates: &[IndexPredicate],
) -> Index {
    // With the key after the columns the index has the order of a page.
    let sorted = columns.iter().copied().chain([table.key()]);
    let listed = column_list(sorted.chain(includes.iter().copied()));
    let condition = condition(predicates);
    Index {
        name: index_name(table, columns, predicates),
        create: "CREATE INDEX",
        definition: format!("ON {} ({listed}){condition}", quote_ident(table.name)),
    }
}

/// The maximum length of a name in Postgres, in bytes.
const MAX_NAME_BYTES: usize = 63;

/// Returns the name of an index. The predicates are part of it, because a partial index may have the same columns as
/// another index.
fn index_name(table: &Table, columns: &[&str], predicates: &[IndexPredicate]) -> String {
    let sorted_by = match columns {
        [] => table.key().to_owned(),
        columns => columns.join("_"),
    };
    let mut name = format!("{}_by_{sorted_by}", table.name);
    for predicate in predicates {
        name.push_str("_if_");
        name.push_str(predicate.column());
    }
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    // Postgres would truncate the name, and two truncated names could be the same.
    let hash = Sha256::digest(&name);
    let hash = hex(hash.get(..4).unwrap_or_default());
    let kept = name.get(..MAX_NAME_BYTES - hash.len() - 1);
    format!("{}_{hash}", kept.unwrap_or_default())
}

fn unique_index(table: &Table, unique: &Unique) -> Index {
    let columns = column_list(unique.columns.iter().copied());
    let condition = condition(unique.predicates);
    Index {
        name: format!("{}_{}", table.name, unique.name),
        create: "CREATE UNIQUE INDEX",
        definition: format!("ON {} ({columns}){condition}", quote_ident(table.name)),
    }
}

/// Returns the WHERE clause of a partial index; empty if there are no predicates.
fn condition(predicates: &[IndexPredicate]) -> String {
    if predicates.is_empty() {
        return String::new();
    }
    let predicates: Vec<String> = predicates.iter().copied().map(predicate).collect();
    format!(" WHERE {}", predicates.join(" AND "))
}

fn predicate(predicate: IndexPredicate) -> String {
    match predicate {
        IndexPredicate::IsNull(column) => format!("{} IS NULL", quote_ident(column)),
        IndexPredicate::NotNull(column) => format!("{} IS NOT NULL", quote_ident(column)),
        IndexPredicate::Is(column, text) => {
            format!("{} = {}", quote_ident(column), text_literal(text))
        }
        IndexPredicate::OneOf(column, texts) => {
            let texts: Vec<String> = texts.iter().map(|text| text_literal(text)).collect();
            format!("{} IN ({})", quote_ident(column), texts.join(", "))
        }
    }
}

/// Quotes a name as an SQL identifier.
#[must_use]
pub fn quote_ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quotes a text as an SQL literal.
#[must_use]
pub fn text_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

const fn guard(if_missing: bool) -> &'static str {
    if if_missing { "IF NOT EXISTS " } else { "" }
}

fn column_list(columns: impl Iterator<Item = &'static str>) -> String {
    columns.map(quote_ident).collect::<Vec<_>>().join(", ")
}
