//! The query plans of lists: an index returns every page in order, for every combination of filters.

use std::collections::{BTreeMap, BTreeSet};

use core_domain::kernel::Caller;
use core_domain::registry::DeploymentStatus;
use core_http::kernel::testing::operator;
use core_storage::fault::FaultStore;
use core_storage::testing::{PlanDatabases, Plans};
use core_storage::{Filter, Select};
use serde_json::Value;

use super::fixture::{Case, Fixture, description};
use super::lists::{add_records, next_cursor, takes};
use super::samples::samples;
use crate::world::World;

/// The number of records on a page.
const PAGE: u32 = 2;

/// Returns the values with which a filter is tested.
fn values(case: &Case, name: &str, schema: &Value) -> Vec<String> {
    if let Some(id) = case.fixture.ids.get(name) {
        return vec![id.clone()];
    }
    let document = description(&case.service);
    let any_of = schema["anyOf"].as_array().into_iter().flatten();
    let references = std::iter::once(schema).chain(any_of);
    for pointer in references.filter_map(|schema| schema["$ref"].as_str()) {
        let schema = document.pointer(pointer.trim_start_matches('#')).unwrap();
        if let found @ [_, ..] = &*texts(&schema["enum"]) {
            return found.to_vec();
        }
    }
    for known in ["enum", "examples"] {
        if let found @ [_, ..] = &*texts(&schema[known]) {
            return found.to_vec();
        }
    }
    let types = schema["type"].to_string();
    match () {
        () if types.contains("boolean") => vec!["true".to_owned()],
        () if types.contains("integer") => vec!["1".to_owned()],
        () if types.contains("string") => vec!["any".to_owned()],
        () => panic!("{}: no value for {name}: {schema}", case.name()),
    }
}

fn texts(values: &Value) -> Vec<String> {
    let values = values.as_array().into_iter().flatten();
    values
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// Returns every combination of the optional filters of a list, as query strings.
fn queries(case: &Case) -> Vec<String> {
    let operation = case.operation();
    let mut queries = vec![String::new()];
    for parameter in operation["parameters"].as_array().unwrap() {
        let Some(name) = parameter["name"].as_str() else {
            continue;
        };
        let filters = parameter["in"] == "query" && parameter["required"] != true;
        if !filters || name == "limit" || name == "cursor" {
            continue;
        }
        let filters = values(case, name, &parameter["schema"]).into_iter();
        let with: Vec<String> = filters
            .flat_map(|value| queries.iter().map(move |q| format!("{q}&{name}={value}")))
            .collect();
        queries.extend(with);
    }
    queries
}

/// Tables whose lists may filter rows one by one, and the rows to which the filtering is limited.
const SMALL_TABLES: [(&str, &str); 5] = [
    ("unsealed_audit_entries", "those of the last moment"),
    ("api_keys", "the keys of one owner"),
    ("members", "the members of one organization"),
    ("jobs", "those of one platform or in one status"),
    (
        "dlq_entries",
        "those of one platform, of one kind or in one status",
    ),
];

/// Returns whether a condition only excludes deleted rows or rows of the other audit stream.
fn hides(filter: &Filter) -> bool {
    match filter {
        Filter::IsNull(column) => *column == "deleted_at",
        Filter::Compare(column, ..) => *column == "stream",
        _ => false,
    }
}

/// Returns whether a query reads a list. A page reads one row more than it shows, a list reads all rows that it shows,
/// and a lookup reads one row. Holds are excluded because all of them are read, one of each source.
fn is_list(select: &Select) -> bool {
    let ordered = !select.order.is_empty();
    ordered && select.limit >= Some(PAGE) && select.table.name != "job_holds"
}

/// Returns whether a filter selects unfinished deployments by their status. They have an index of their own, and a limit
/// keeps their number small.
fn is_of_unfinished(filter: &str, table: &str) -> bool {
    let mut unfinished = DeploymentStatus::IN_FLIGHT.iter();
    let selects =
        |status: &DeploymentStatus| filter.contains(&format!("status = '{status}'::text"));
    table == "deployments" && unfinished.any(selects)
}

/// Returns whether a filter excludes no row of an index: all messages of a webhook belong to its platform. It says in which
/// database they are.
fn is_of_webhook(filter: &str, table: &str) -> bool {
    table == "webhook_deliveries" && filter.starts_with("(platform_id ")
}

/// Returns whether a query selects audit entries by their actor and by an action or a type. No index has such a combination:
/// the database reads the entries of that actor, or those with the other value.
fn combines_actor(select: &Select) -> bool {
    let filters = select.filter.conjuncts();
    let selects_by = |wanted: &[&str]| {
        let mut compared = filters.iter().filter_map(|filter| match filter {
            Filter::Compare(column, ..) => Some(column),
            _ => None,
        });
        compared.any(|column| wanted.contains(column))
    };
    select.table.name == "audit_entries"
        && selects_by(&["actor_id"])
        && selects_by(&["action", "entity_type"])
}

/// Returns the first step of the plans that scans or sorts; `None` if the plans use an index.
fn problem(select: &Select, plans: &Plans) -> Option<String> {
    let table = select.table.name;
    let few = SMALL_TABLES.iter().any(|(of_few, _)| *of_few == table);
    let everything = few || select.filter.conjuncts().into_iter().all(hides);
    for step in &plans.sqlite {
        let scans = step.starts_with("SCAN") && !(everything && step.contains("USING"));
        if scans || step.contains("TEMP B-TREE") {
            return Some(format!("SQLite: {step}"));
        }
    }
    for step in &plans.postgres {
        // `Incremental Sort` is allowed: it sorts only rows with the same time, by their ids.
        let node = step.trim_start_matches("->").trim();
        let scans = node.starts_with("Seq Scan") || node == "Sort";
        // These filters exclude few rows.
        let allowed = ["(deleted_at IS NULL)", "(entity_type <> 'main'::text)"];
        let filter = node.strip_prefix("Filter: ");
        let filters = filter
            .filter(|filter| !allowed.contains(filter))
            .is_some_and(|filter| {
                !is_of_unfinished(filter, table) && !is_of_webhook(filter, table)
            });
        if scans || filters && !few && !combines_actor(select) {
            return Some(format!("Postgres: {node}"));
        }
    }
    let indexed = |step: &String| step.contains("Index") && step.contains(table);
    (!plans.postgres.iter().any(indexed)).then(|| "Postgres uses no index".to_owned())
}

/// Requests the first two pages of a list with every filter, as an operator and as a caller with the lowest role.
/// Returns the list queries that reached the store.
async fn selects(case: &Case, queries_of: &FaultStore) -> Vec<Select> {
    let mut selects = Vec::new();
    let mut answered = 0;
    for caller in [operator(), case.lowest_caller()] {
        for query in queries(case) {
            drop(queries_of.take_queries());
            let ask = case
                .valid_request()
                .with_query(&format!("limit={PAGE}{query}"));
            let first = case.send(&caller, &ask).await;
            // Some filters are not permitted to every caller, and some exclude each other.
            answered += usize::from(first.is_success());
            if let Some(cursor) = next_cursor(&first.json) {
                let ask = ask.with_query(&format!("cursor={cursor}"));
                let second = case.send(&caller, &ask).await;
                assert!(second.is_success(), "{}: {}", case.name(), second.json);
            }
            selects.extend(queries_of.take_queries().into_iter().filter(is_list));
        }
    }
    assert!(answered > 0, "{} was always refused", case.name());
    selects
}

#[tokio::test]
async fn no_list_query_scans_a_table_or_sorts() {
    let planners = PlanDatabases::new().await.unwrap();
    let (world, queries_of) = World::faulty();
    let mut fixture = Fixture::of(world).await;
    let (mut problems, mut planned) = (BTreeMap::new(), BTreeSet::new());
    for sample in samples() {
        let case = Case::within(fixture, sample);
        if !takes(&case, "limit") {
            fixture = case.fixture;
            continue;
        }
        add_records(&case).await;
        for select in selects(&case, &queries_of).await {
            if !planned.insert(format!("{select:?}")) {
                continue;
            }
            let plans = planners.plans(&select).await.unwrap();
            if let Some(problem) = problem(&select, &plans) {
                let told = || format!("{} {select:?}: {plans:#?}", case.name());
                problems.entry(problem).or_insert_with(told);
            }
        }
        fixture = case.fixture;
    }
    assert_eq!(planned.len(), 242);
    assert!(problems.is_empty(), "{problems:#?}");
}

/// Returns whether a list response contains the number of matching records.
fn has_total(answer: &Value) -> bool {
    [&answer["total"], &answer["pagination"]["total"]]
        .iter()
        .any(|total| total.is_u64())
}

/// Requests the first page of a list. Returns the tables of the list that were counted, or `None` if the response needs a
/// total or is not a list.
async fn counted_tables(
    case: &Case,
    caller: &Caller,
    queries_of: &FaultStore,
) -> Option<Vec<&'static str>> {
    drop((queries_of.take_queries(), queries_of.take_counts()));
    let ask = case.valid_request().with_query(&format!("limit={PAGE}"));
    let page = case.send(caller, &ask).await;
    if !page.json["data"].is_array() || has_total(&page.json) {
        return None;
    }
    let lists = queries_of.take_queries().into_iter().filter(is_list);
    let lists: BTreeSet<&str> = lists.map(|select| select.table.name).collect();
    let counts = queries_of.take_counts().into_iter();
    let counted = counts.map(|select| select.table.name);
    Some(counted.filter(|table| lists.contains(table)).collect())
}

#[tokio::test]
async fn a_list_without_a_total_counts_no_records() {
    let (world, queries_of) = World::faulty();
    let mut fixture = Fixture::of(world).await;
    let mut uncounted = BTreeSet::new();
    for sample in samples() {
        let case = Case::within(fixture, sample);
        if takes(&case, "limit") {
            add_records(&case).await;
            for caller in [operator(), case.lowest_caller()] {
                if let Some(counted) = counted_tables(&case, &caller, &queries_of).await {
                    assert!(counted.is_empty(), "{} counts {counted:?}", case.name());
                    uncounted.insert(case.name());
                }
            }
        }
        fixture = case.fixture;
    }
    assert_eq!(uncounted.len(), 9, "{uncounted:?}");
}
