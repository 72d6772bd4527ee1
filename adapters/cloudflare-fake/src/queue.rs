//! Queues and their consumers.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::envelope::{Refusal, Reply, bare, ok};
use crate::request::Request;
use crate::state::State;
use crate::state::queue::{Consumer, ConsumerBody, Queue};

const NOT_FOUND: Refusal = Refusal::new(404, 11000, "Queue does not exist.");
const NO_CONSUMER: Refusal = Refusal::new(404, 11004, "Consumer does not exist.");
const EXISTS: Refusal = Refusal::new(409, 11009, "Queue name is already taken.");
const INVALID_NAME: Refusal = Refusal::new(400, 11003, "Queue name is invalid.");
const IN_USE: Refusal = Refusal::new(409, 11005, "Queue still has consumers.");
const HAS_CONSUMER: Refusal = Refusal::new(409, 11004, "Queue already has a worker consumer.");
const NO_SCRIPT: Refusal = Refusal::new(400, 10007, "The consumer's Worker does not exist.");
const INVALID: u32 = 10026;
const INVALID_CONSUMER: Refusal = Refusal::new(400, 100_127, "Consumer settings are invalid.");
const INVALID_SETTINGS: Refusal = Refusal::new(400, 100_128, "Queue settings are invalid.");
const LONGEST_DELAY: u64 = 86_400;
const LONGEST_RETENTION: u64 = 1_209_600;

#[derive(Deserialize)]
struct QueueBody {
    queue_name: Option<String>,
    #[serde(default)]
    settings: Map<String, Value>,
}

/// `/accounts/{account_id}/queues/..`
pub(crate) fn route(state: &mut State, request: &Request, path: &[&str]) -> Option<Reply> {
    let method = request.method.as_str();
    let Some((id, rest)) = path.split_first() else {
        return match method {
            "GET" => Some(list(state, request)),
            "POST" => Some(create(state, request)),
            _ => None,
        };
    };
    let Some(at) = state.queues.iter().position(|queue| queue.id == *id) else {
        return Some(Err(NOT_FOUND));
    };
    Some(match (method, rest) {
        ("DELETE", []) => delete(state, at),
        ("GET", ["consumers"]) => {
            let queue = &state.queues[at];
            ok(queue
                .consumers
                .iter()
                .map(|consumer| consumer.view(queue))
                .collect())
        }
        ("POST", ["consumers"]) => add_consumer(state, at, request),
        ("PUT", ["consumers", id]) => update_consumer(state, at, id, request),
        ("DELETE", ["consumers", id]) => remove_consumer(state, at, id),
        _ => return None,
    })
}

/// Lists queues without pagination. The parameter `name` is not in the published document, but wrangler sends it.
fn list(state: &State, request: &Request) -> Reply {
    let name = request.param("name").unwrap_or_default();
    let matching = state
        .queues
        .iter()
        .filter(|queue| queue.name.contains(name));
    ok(matching.map(Queue::view).collect())
}

fn is_valid_name(name: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=63).contains(&name.len())
        && name.chars().all(|c| alphanumeric(c) || c == '-')
        && name.starts_with(alphanumeric)
        && name.ends_with(alphanumeric)
}

fn check_settings(settings: &Map<String, Value>) -> Result<(), Refusal> {
    for (name, most) in [
        ("delivery_delay", LONGEST_DELAY),
        ("message_retention_period", LONGEST_RETENTION),
    ] {
        let fits = |value: &Value| value.as_u64().is_some_and(|value| value <= most);
        if !settings.get(name).is_none_or(fits) {
            return Err(INVALID_SETTINGS);
        }
    }
    Ok(())
}

/// Returns a queue name if it is valid and no queue has it.
fn free_name(state: &State, name: String) -> Result<String, Refusal> {
    if !is_valid_name(&name) {
        return Err(INVALID_NAME);
    }
    if state.queues.iter().any(|queue| queue.name == name) {
        return Err(EXISTS);
    }
    Ok(name)
}

fn create(state: &mut State, request: &Request) -> Reply {
    let body: QueueBody = request.json(INVALID)?;
    check_settings(&body.settings)?;
    let name = free_name(state, body.queue_name.ok_or(INVALID_NAME)?)?;
    let mut settings = Map::from_iter([
        ("delivery_delay".to_owned(), json!(0)),
        ("delivery_paused".to_owned(), json!(false)),
        ("message_retention_period".to_owned(), json!(345_600)),
    ]);
    settings.extend(body.settings);
    let queue = Queue {
        id: state.ids.hex(),
        name,
        created: state.clock.now(),
        settings,
        consumers: Vec::new(),
    };
    let view = queue.view();
    state.queues.push(queue);
    ok(view)
}

fn delete(state: &mut State, at: usize) -> Reply {
    if !state.queues[at].consumers.is_empty() {
        return Err(IN_USE);
    }
    state.queues.remove(at);
    Ok(bare(json!({"success": true, "errors": [], "messages": []})))
}

/// Returns the body of a consumer if the objects that it refers to exist.
fn consumer_body(state: &State, request: &Request) -> Result<ConsumerBody, Refusal> {
    let body: ConsumerBody = request.json(INVALID)?;
    match (body.r#type.as_str(), &body.script_name) {
        ("worker", Some(script)) if state.script(script).is_some() => {}
        ("worker", Some(_)) => return Err(NO_SCRIPT),
        ("http_pull", None) => {}
        _ => return Err(INVALID_CONSUMER),
    }
    let most = [
        ("batch_size", 100),
        ("max_retries", 100),
        ("max_wait_time_ms", 60_000),
        ("retry_delay", LONGEST_DELAY),
    ];
    for (name, most) in most {
        let fits = |value: &Value| value.as_u64().is_some_and(|value| value <= most);
        if !body.settings.get(name).is_none_or(fits) {
            return Err(INVALID_CONSUMER);
        }
    }
    let exists = |name: &String| state.queues.iter().any(|queue| queue.name == *name);
    if !body.dead_letter_queue.as_ref().is_none_or(exists) {
        return Err(NOT_FOUND);
    }
    Ok(body)
}

fn add_consumer(state: &mut State, at: usize, request: &Request) -> Reply {
    let body = consumer_body(state, request)?;
    if state.queues[at]
        .consumers
        .iter()
        .any(|consumer| consumer.body.r#type == body.r#type)
    {
        return Err(HAS_CONSUMER);
    }
    let consumer = Consumer {
        id: state.ids.hex(),
        created: state.clock.now(),
        body,
    };
    let queue = &mut state.queues[at];
    queue.consumers.push(consumer);
    ok(queue
        .consumers
        .last()
        .map(|consumer| consumer.view(queue))
        .into())
}

fn consumer(queue: &Queue, id: &str) -> Result<usize, Refusal> {
    let at = queue
        .consumers
        .iter()
        .position(|consumer| consumer.id == id);
    at.ok_or(NO_CONSUMER)
}

fn update_consumer(state: &mut State, at: usize, id: &str, request: &Request) -> Reply {
    let found = consumer(&state.queues[at], id)?;
    let body = consumer_body(state, request)?;
    let queue = &mut state.queues[at];
    queue.consumers[found].body = body;
    ok(queue.consumers[found].view(queue))
}

fn remove_consumer(state: &mut State, at: usize, id: &str) -> Reply {
    let found = consumer(&state.queues[at], id)?;
    state.queues[at].consumers.remove(found);
    Ok(bare(json!({"success": true, "errors": [], "messages": []})))
}
