//! DNS records of a zone.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Map, Value, json};

use crate::envelope::{Refusal, Reply, ok};
use crate::page::{PageSize, page};
use crate::request::Request;
use crate::state::State;
use crate::state::dns::{Record, is_host, text};
use crate::state::zone::Zone;

const NOT_FOUND: Refusal = Refusal::new(404, 81044, "Record does not exist.");
const EXISTS: Refusal = Refusal::new(400, 81057, "The record already exists.");
const IDENTICAL: Refusal = Refusal::new(400, 81058, "An identical record already exists.");
const HOST_TAKEN: Refusal = Refusal::new(
    400,
    81053,
    "An A, AAAA, or CNAME record with that host already exists.",
);
const INVALID: u32 = 1004;
const BAD_CONTENT: u32 = 9005;
const PAGE: PageSize = PageSize {
    min: 1,
    default: 100,
    max: 5_000_000,
};
const TYPES: [&str; 21] = [
    "A",
    "AAAA",
    "CAA",
    "CERT",
    "CNAME",
    "DNSKEY",
    "DS",
    "HTTPS",
    "LOC",
    "MX",
    "NAPTR",
    "NS",
    "OPENPGPKEY",
    "PTR",
    "SMIMEA",
    "SRV",
    "SSHFP",
    "SVCB",
    "TLSA",
    "TXT",
    "URI",
];
/// The fields that a request may set.
const FIELDS: [&str; 8] = [
    "name", "type", "content", "ttl", "proxied", "comment", "tags", "priority",
];

/// `/zones/{zone_id}/dns_records/..`
pub(super) fn route(
    state: &mut State,
    zone: usize,
    request: &Request,
    path: &[&str],
) -> Option<Reply> {
    let method = request.method.as_str();
    let Some((id, [])) = path.split_first() else {
        return match (method, path) {
            ("GET", []) => Some(list(&state.zones[zone], request)),
            ("POST", []) => Some(create(state, zone, request)),
            _ => None,
        };
    };
    let Some(at) = state.zones[zone]
        .records
        .iter()
        .position(|record| record.id == *id)
    else {
        return Some(Err(NOT_FOUND));
    };
    Some(match method {
        "PATCH" => update(state, zone, at, request),
        "DELETE" => {
            state.zones[zone].records.remove(at);
            ok(json!({"id": id}))
        }
        _ => return None,
    })
}

fn create(state: &mut State, zone: usize, request: &Request) -> Reply {
    let fields = read(&state.zones[zone], request, Map::new())?;
    check_conflicts(&state.zones[zone], &fields, None)?;
    let record = Record::new(state.ids.hex(), state.clock.now(), fields);
    let view = record.view();
    state.zones[zone].records.push(record);
    ok(view)
}

fn update(state: &mut State, zone: usize, at: usize, request: &Request) -> Reply {
    let previous = state.zones[zone].records[at].fields.clone();
    let fields = read(&state.zones[zone], request, previous)?;
    check_conflicts(&state.zones[zone], &fields, Some(at))?;
    let record = &mut state.zones[zone].records[at];
    record.fields = fields;
    record.modified = state.clock.now();
    ok(record.view())
}

/// Merges the fields of a body into the previous ones. Returns an error if the result is not a valid record.
fn read(
    zone: &Zone,
    request: &Request,
    mut fields: Map<String, Value>,
) -> Result<Map<String, Value>, Refusal> {
    let body: Map<String, Value> = request.json(INVALID)?;
    let invalid = |why| Refusal::new(400, INVALID, why);
    fields.extend(
        body.into_iter()
            .filter(|(name, value)| FIELDS.contains(&name.as_str()) && !value.is_null()),
    );
    let name =
        full_name(zone, text(&fields, "name")).ok_or(invalid("DNS Validation Error: no name"))?;
    fields.insert("name".to_owned(), json!(name));
    let kind = text(&fields, "type").to_owned();
    if !TYPES.contains(&kind.as_str()) {
        return Err(invalid("DNS Validation Error: unknown type"));
    }
    check_content(&kind, text(&fields, "content"))?;
    let ttl = fields
        .entry("ttl")
        .or_insert(json!(1))
        .as_f64()
        .unwrap_or_default();
    if ttl != 1.0 && !(60.0..=86_400.0).contains(&ttl) {
        return Err(invalid(
            "DNS Validation Error: ttl must be 1 or from 60 to 86400",
        ));
    }
    let proxied = fields.entry("proxied").or_insert(json!(false));
    if *proxied == true && !is_host(&kind) {
        return Err(Refusal::new(
            400,
            9004,
            "This record type cannot be proxied.",
        ));
    }
    Ok(fields)
}

/// Returns a full name in the zone. `@` and relative names are completed.
fn full_name(zone: &Zone, name: &str) -> Option<String> {
    let name = name.to_lowercase();
    match name.as_str() {
        "" => None,
        "@" => Some(zone.name.clone()),
        name if zone.contains(name) => Some(name.to_owned()),
        relative => Some(format!("{relative}.{}", zone.name)),
    }
}

fn check_content(kind: &str, content: &str) -> Result<(), Refusal> {
    let is_name = |name: &str| name.contains('.') && !name.contains([' ', '/', ':']);
    let valid = match kind {
        "A" => content.parse::<Ipv4Addr>().is_ok(),
        "AAAA" => content.parse::<Ipv6Addr>().is_ok(),
        "CNAME" | "NS" | "MX" => is_name(content),
        _ => true,
    };
    if valid {
        Ok(())
    } else {
        Err(Refusal::new(
            400,
            BAD_CONTENT,
            "Content for the record is invalid.",
        ))
    }
}

fn check_conflicts(
    zone: &Zone,
    fields: &Map<String, Value>,
    but: Option<usize>,
) -> Result<(), Refusal> {
    let (name, kind) = (text(fields, "name"), text(fields, "type"));
    let others = zone
        .records
        .iter()
        .enumerate()
        .filter(|(at, _)| Some(*at) != but);
    for (_, other) in others.filter(|(_, other)| other.name() == name) {
        let same = |field: &str| other.fields.get(field) == fields.get(field);
        if same("type") && same("content") {
            return Err(if same("ttl") && same("proxied") {
                IDENTICAL
            } else {
                EXISTS
            });
        }
        let other = other.text("type");
        if is_host(kind) && is_host(other) && (kind == "CNAME" || other == "CNAME") {
            return Err(HOST_TAKEN);
        }
    }
    Ok(())
}

/// Lists records. A plain parameter is compared; a parameter with a dot names the comparison.
fn list(zone: &Zone, request: &Request) -> Reply {
    let filters: Vec<_> = request
        .query
        .iter()
        .filter_map(|(name, asked)| filter(name, asked))
        .collect();
    let any = request.param("match") == Some("any") && !filters.is_empty();
    let matches = |record: &&Record| {
        let mut results = filters.iter().map(|filter| filter(record));
        if any {
            results.any(|matched| matched)
        } else {
            results.all(|matched| matched)
        }
    };
    page(
        request,
        zone.records
            .iter()
            .filter(matches)
            .map(Record::view)
            .collect(),
        PAGE,
    )
}

type Filter<'a> = Box<dyn Fn(&Record) -> bool + 'a>;

fn filter<'a>(name: &'a str, asked: &'a str) -> Option<Filter<'a>> {
    let (field, how) = name.split_once('.').unwrap_or((name, "exact"));
    match field {
        "name" | "content" | "comment" | "type" => {}
        "proxied" => {
            return Some(Box::new(move |record| {
                (record.fields["proxied"] == true) == (asked == "true")
            }));
        }
        "search" => {
            return Some(Box::new(move |record| {
                record
                    .fields
                    .values()
                    .any(|value| value.as_str().is_some_and(|text| text.contains(asked)))
            }));
        }
        _ => return None,
    }
    let compare: fn(&str, &str) -> bool = match how {
        "exact" => |own, asked| own.eq_ignore_ascii_case(asked),
        "contains" => |own, asked| own.contains(asked),
        "startswith" => |own, asked| own.starts_with(asked),
        "endswith" => |own, asked| own.ends_with(asked),
        _ => return None,
    };
    Some(Box::new(move |record| compare(record.text(field), asked)))
}
