//! Operations on events.

use crate::envelope::{Refusal, Reply};
use crate::page::{PAGE, TimeRange, page};
use crate::params::Params;
use crate::state::State;
use crate::state::event::Event;

/// The time in seconds after which events are no longer listed.
const LIFETIME: i64 = 30 * 24 * 60 * 60;

pub(crate) fn list(state: &State, params: &Params) -> Reply {
    params.only(&[&PAGE[..], &["created", "type", "types"]].concat())?;
    let (created, kind, kinds) = (
        TimeRange::of_creation(params)?,
        params.text("type")?,
        params.texts("types")?,
    );
    let oldest = state.clock.now() - LIFETIME;
    let rows = state.events.iter().rev().filter(|own| {
        own.created >= oldest
            && created.contains(own.created)
            && kind.is_none_or(|kind| own.kind == kind)
            && (kinds.is_empty() || kinds.contains(&own.kind))
    });
    page(rows.map(Event::render).collect(), params, "/v1/events")
}

pub(crate) fn get(state: &State, id: &str, params: &Params) -> Reply {
    params.only(&[])?;
    let found = state.events.iter().find(|own| own.id == id);
    found
        .map(Event::render)
        .ok_or_else(|| Refusal::missing("event", id, "id"))
}
