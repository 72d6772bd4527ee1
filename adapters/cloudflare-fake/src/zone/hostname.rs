//! Custom hostnames of a zone. Their states advance with each poll.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::envelope::{Refusal, Reply, bare, ok};
use crate::page::{PageSize, page};
use crate::request::Request;
use crate::state::State;
use crate::state::hostname::Hostname;

const NOT_FOUND: Refusal = Refusal::new(404, 1436, "The custom hostname was not found.");
const EXISTS: Refusal = Refusal::new(409, 1406, "Duplicate custom hostname found.");
const REJECTED: Refusal = Refusal::new(400, 1407, "Invalid custom hostname.");
const INVALID: u32 = 1400;
const PAGE: PageSize = PageSize {
    min: 5,
    default: 20,
    max: 50,
};

#[derive(Deserialize)]
struct Body {
    hostname: Option<String>,
    #[serde(default)]
    ssl: Map<String, Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// `/zones/{zone_id}/custom_hostnames/..`
pub(super) fn route(
    state: &mut State,
    zone: usize,
    request: &Request,
    path: &[&str],
) -> Option<Reply> {
    let method = request.method.as_str();
    let Some((id, [])) = path.split_first() else {
        return match (method, path) {
            ("GET", []) => Some(list(&state.zones[zone].hostnames, request)),
            ("POST", []) => Some(create(state, zone, request)),
            _ => None,
        };
    };
    let hostnames = &mut state.zones[zone].hostnames;
    let Some(at) = hostnames.iter().position(|hostname| hostname.id == *id) else {
        return Some(Err(NOT_FOUND));
    };
    Some(match method {
        "GET" => {
            let view = hostnames[at].view();
            hostnames[at].step += 1;
            ok(view)
        }
        "PATCH" => edit(&mut hostnames[at], request),
        "DELETE" => {
            hostnames.remove(at);
            Ok(bare(json!({"id": id})))
        }
        _ => return None,
    })
}

/// Lists hostnames. A plain `hostname` matches any part; with a dot it names the comparison.
fn list(hostnames: &[Hostname], request: &Request) -> Reply {
    let fits = |hostname: &&Hostname| {
        let (status, ssl_status) = hostname.states();
        request
            .query
            .iter()
            .all(|(name, asked)| match name.as_str() {
                "hostname" | "hostname.contain" => hostname.hostname.contains(asked),
                "hostname.exact" => hostname.hostname == *asked,
                "hostname.startsWith" => hostname.hostname.starts_with(asked),
                "id" => hostname.id == *asked,
                "hostname_status" => status == asked,
                "ssl_status" => ssl_status == asked,
                _ => true,
            })
    };
    page(
        request,
        hostnames.iter().filter(fits).map(Hostname::view).collect(),
        PAGE,
    )
}

fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let labels: Vec<_> = name.strip_prefix("*.").unwrap_or(name).split('.').collect();
    let is_label = |label: &&str| (1..=63).contains(&label.len()) && label.chars().all(allowed);
    name.len() <= 255 && labels.len() > 1 && labels.iter().all(is_label)
}

fn create(state: &mut State, zone: usize, request: &Request) -> Reply {
    let body: Body = request.json(INVALID)?;
    let name = body.hostname.filter(|name| is_name(name)).ok_or(REJECTED)?;
    // All zones are checked, because a hostname belongs to one customer.
    if state
        .zones
        .iter()
        .flat_map(|zone| &zone.hostnames)
        .any(|own| own.hostname == name)
    {
        return Err(EXISTS);
    }
    let hostname = Hostname {
        id: state.ids.hex(),
        hostname: name,
        ssl_id: state.ids.uuid(),
        ssl: body.ssl,
        fields: body.rest,
        created: state.clock.now(),
        step: 0,
        pinned: None,
    };
    let view = hostname.view();
    state.zones[zone].hostnames.push(hostname);
    ok(view)
}

/// Changes a hostname. A body with `ssl` restarts the validation.
fn edit(hostname: &mut Hostname, request: &Request) -> Reply {
    let body: Body = request.json(INVALID)?;
    if !body.ssl.is_empty() {
        hostname.ssl.extend(body.ssl);
        (hostname.step, hostname.pinned) = (0, None);
    }
    hostname.fields.extend(body.rest);
    ok(hostname.view())
}
