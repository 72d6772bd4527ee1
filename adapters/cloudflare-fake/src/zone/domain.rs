//! Custom domains of workers, which include their DNS record.

use serde::Deserialize;
use serde_json::json;

use crate::envelope::{Refusal, Reply, bare, ok};
use crate::request::Request;
use crate::state::State;
use crate::state::dns::Record;
use crate::state::worker_domain::Domain;

const NOT_FOUND: Refusal = Refusal::new(404, 100_114, "The domain does not exist.");
const TAKEN: Refusal = Refusal::new(
    409,
    100_117,
    "The hostname already has DNS records that are managed elsewhere.",
);
const NO_ZONE: Refusal = Refusal::new(400, 100_116, "The hostname is in no zone of the account.");
const NO_SERVICE: Refusal = Refusal::new(404, 10007, "This Worker does not exist on your account.");
const INVALID: u32 = 100_112;

#[derive(Deserialize)]
struct Body {
    hostname: String,
    service: String,
    environment: Option<String>,
    zone_id: Option<String>,
    zone_name: Option<String>,
}

/// `/accounts/{account_id}/workers/domains/..`
pub(crate) fn route(state: &mut State, request: &Request, path: &[&str]) -> Option<Reply> {
    Some(match (request.method.as_str(), path) {
        ("GET", []) => list(state, request),
        ("PUT", []) => put(state, request),
        ("DELETE", [id]) => find(state, id).map(|at| {
            let domain = state.worker_domains.remove(at);
            remove_record(state, &domain);
            bare(json!({"success": true, "errors": [], "messages": []}))
        }),
        _ => return None,
    })
}

fn find(state: &State, id: &str) -> Result<usize, Refusal> {
    let at = state
        .worker_domains
        .iter()
        .position(|domain| domain.id == id);
    at.ok_or(NOT_FOUND)
}

fn list(state: &State, request: &Request) -> Reply {
    let fits = |domain: &&Domain| {
        request
            .query
            .iter()
            .all(|(name, asked)| domain.field(name).is_none_or(|own| own == asked))
    };
    ok(state
        .worker_domains
        .iter()
        .filter(fits)
        .map(Domain::view)
        .collect())
}

/// Creates or replaces a domain.
fn put(state: &mut State, request: &Request) -> Reply {
    let body: Body = request.json(INVALID)?;
    if state.script(&body.service).is_none() {
        return Err(NO_SERVICE);
    }
    if let Some(at) = state
        .worker_domains
        .iter()
        .position(|domain| domain.hostname == body.hostname)
    {
        let domain = &mut state.worker_domains[at];
        domain.service = body.service;
        return ok(domain.view());
    }
    let named = |own: &str, asked: &Option<String>| asked.as_ref().is_none_or(|asked| asked == own);
    let mut zones = state.zones.iter();
    let zone = zones.position(|zone| {
        zone.contains(&body.hostname)
            && named(&zone.id, &body.zone_id)
            && named(&zone.name, &body.zone_name)
    });
    let zone = zone.ok_or(NO_ZONE)?;
    if state.zones[zone]
        .records
        .iter()
        .any(|record| record.name() == body.hostname)
    {
        return Err(TAKEN);
    }
    let record = Record::of_worker(state.ids.hex(), state.clock.now(), &body.hostname);
    let domain = Domain {
        id: state.ids.hex(),
        cert_id: state.ids.uuid(),
        hostname: body.hostname,
        service: body.service,
        environment: body.environment.unwrap_or_else(|| "production".to_owned()),
        zone_id: state.zones[zone].id.clone(),
        zone_name: state.zones[zone].name.clone(),
        record_id: record.id.clone(),
    };
    state.zones[zone].records.push(record);
    let view = domain.view();
    state.worker_domains.push(domain);
    ok(view)
}

fn remove_record(state: &mut State, domain: &Domain) {
    for zone in &mut state.zones {
        zone.records.retain(|record| record.id != domain.record_id);
    }
}

/// Deletes the domains and routes of a deleted worker.
pub(crate) fn remove_references_to_worker(state: &mut State, name: &str) {
    let of_worker = |domain: &mut Domain| domain.service == name;
    let gone: Vec<_> = state.worker_domains.extract_if(.., of_worker).collect();
    for domain in gone {
        remove_record(state, &domain);
    }
    for zone in &mut state.zones {
        zone.routes
            .retain(|route| route.script.as_deref() != Some(name));
    }
}
