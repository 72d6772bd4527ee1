//! Cursors of lists: signed positions.
//!
//! A cursor of a list leads to the next page of that list. Altered and truncated cursors, those of another list, filter,
//! platform or installation, and other texts are refused with status 400.

use core_http::kernel::Service;
use core_http::kernel::testing::Answer;
use core_suite::Suite;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::services::{request, send, suite, with_service_key};

/// The number of records on a page.
const PAGE: usize = 2;

/// The number of records of each kind: two pages and a half.
const RECORDS: usize = 5;

/// The maximum length of a cursor in the OpenAPI document.
const MAX_CHARS: usize = 4_096;

/// The number of lists of a world.
const LISTS: u8 = 5;

/// The number of ways to make a cursor from an input.
const WAYS: u8 = 5;

thread_local! {
    static WORLD: World = World::new();
}

/// A suite with several lists, and another suite with a list of the same query.
struct World {
    runtime: Runtime,
    _suites: [Suite; 2],
    /// The last one belongs to the other suite.
    lists: Vec<List>,
}

/// A list of a registry.
struct List {
    registry: Service,
    path: String,
    /// The cursor after the first page.
    cursor: String,
    /// The records of the second page.
    second_page: Vec<Value>,
}

/// Checks the claims for one cursor.
///
/// The input has the list, the way to make the cursor and a position in one byte each, and a text.
pub(crate) fn run(data: &[u8]) {
    let Some(([list, way, position], text)) = data.split_first_chunk::<3>() else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    WORLD.with(|world| world.check(*list, *way, *position, &text));
}

/// Returns an input for each list and way, and texts that are similar to cursors.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let texts: [&[u8]; 5] = [
        b"",
        b"A",
        b"=",
        b"AAAAAAAAAAAAAAAAAAAAAFs1LFsxLCJhIl1d",
        b"\xff\0 %",
    ];
    let lists = (0..LISTS).flat_map(|list| (0..WAYS).map(move |way| [list, way]));
    lists
        .flat_map(|[list, way]| {
            texts.map(|text| [&[list, way, 37 * list + 11 * way], text].concat())
        })
        .collect()
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.unwrap();
        let suites = [1, 2].map(|seed| runtime.block_on(suite(seed)));
        let mut lists = lists_of(&runtime, &suites[0]);
        assert_eq!(lists.len(), usize::from(LISTS));
        // Of the other suite, only the list of platforms has the query of a list of the first one.
        lists.extend(lists_of(&runtime, &suites[1]).into_iter().take(1));
        Self {
            runtime,
            _suites: suites,
            lists,
        }
    }

    fn check(&self, list: u8, way: u8, position: u8, text: &str) {
        let own = &self.lists[usize::from(list % LISTS)];
        let at = usize::from(position) % own.cursor.len();
        let (before, after) = own.cursor.split_at(at);
        let cursor = match way % WAYS {
            0 => own.cursor.clone(),
            1 => text.to_owned(),
            2 => before.to_owned(),
            // A replaced, inserted or removed text.
            3 => format!("{before}{text}{}", &after[usize::from(position) % 2..]),
            _ => {
                let other = usize::from(position) % self.lists.len();
                self.lists[other].cursor.clone()
            }
        };
        let answer = own.page(&self.runtime, &cursor);
        if cursor == own.cursor {
            assert_eq!(answer.status, 200, "a genuine cursor is refused: {cursor}");
            assert_eq!(answer.json["data"], json!(own.second_page), "{cursor}");
            return;
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let code = if cursor.len() <= MAX_CHARS && cursor.chars().all(fits) {
            "INVALID_CURSOR"
        } else {
            "VALIDATION_ERROR"
        };
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, code),
            "{}{cursor}: {}",
            own.path,
            answer.json
        );
    }
}

/// Creates platforms and entities. Returns the lists of them.
fn lists_of(runtime: &Runtime, suite: &Suite) -> Vec<List> {
    let registry = &suite.registry();
    let platforms = create_all(runtime, registry, "/api/v1/platforms", &json!({}));
    let mut paths = vec!["/api/v1/platforms?".to_owned()];
    for platform in &platforms[..2] {
        let path = format!("/api/v1/platforms/{platform}/entities");
        create_all(runtime, registry, &path, &json!({ "type": "tenant" }));
        paths.extend([format!("{path}?"), format!("{path}?type=tenant&")]);
    }
    let paths = paths.into_iter();
    paths
        .map(|path| List::read(runtime, registry, path))
        .collect()
}

impl List {
    /// Reads the cursor and the second page of a list.
    fn read(runtime: &Runtime, registry: &Service, path: String) -> Self {
        let get = |query: String| {
            let answer = get(runtime, registry, &format!("{path}{query}"));
            assert_eq!(answer.status, 200, "{path}: {}", answer.json);
            answer.json
        };
        let all = get("limit=100".to_owned());
        let records = all["data"].as_array().unwrap();
        let first = get(format!("limit={PAGE}"));
        let cursor = first["pagination"]["nextCursor"].as_str().unwrap();
        Self {
            cursor: cursor.to_owned(),
            second_page: records[PAGE..2 * PAGE].to_vec(),
            registry: registry.clone(),
            path,
        }
    }

    fn page(&self, runtime: &Runtime, cursor: &str) -> Answer {
        let cursor = utf8_percent_encode(cursor, NON_ALPHANUMERIC);
        let path = format!("{}limit={PAGE}&cursor={cursor}", self.path);
        get(runtime, &self.registry, &path)
    }
}

fn get(runtime: &Runtime, registry: &Service, path: &str) -> Answer {
    let request = with_service_key(request(Method::GET, path, "", ""));
    runtime.block_on(send(registry, request)).unwrap()
}

/// Creates records with these fields. Returns their ids.
fn create_all(runtime: &Runtime, registry: &Service, path: &str, fields: &Value) -> Vec<String> {
    let create = |number: usize| {
        let mut body = fields.clone();
        body["name"] = json!("Engines");
        body["slug"] = json!(format!("engines-{number}"));
        let request = request(Method::POST, path, "application/json", body.to_string());
        let created = runtime.block_on(send(registry, with_service_key(request)));
        created.unwrap().id()
    };
    (0..RECORDS).map(create).collect()
}
