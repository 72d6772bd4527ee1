//! Requests to every endpoint of every service: path parameters, query, headers and body.
//!
//! No request makes a service panic or fail. The OpenAPI document has the status, the error code and the media type of
//! every response. Spaces around a JSON body change nothing.

use std::cell::RefCell;

use core_http::kernel::Service;
use core_http::kernel::testing::Answer;
use core_suite::Suite;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::services::{request, send, suite, with_service_key};

/// The number of requests after which the suite is created anew, because every request can add records or end the
/// platform.
const MAX_REQUESTS: u32 = 500;

/// The media types of bodies, chosen by the third byte of the input.
const MEDIA_TYPES: [&str; 6] = [
    "application/json",
    "application/x-www-form-urlencoded",
    "application/octet-stream",
    "multipart/form-data; boundary=x",
    "application/gzip",
    "",
];

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// The services, with a platform and its entity.
struct World {
    runtime: Runtime,
    _suite: Suite,
    endpoints: Vec<Target>,
    ids: Vec<(&'static str, String)>,
    requests: u32,
}

/// An endpoint, and its operation in the OpenAPI document.
struct Target {
    service: Service,
    method: Method,
    path: &'static str,
    operation: Value,
}

/// Checks the claims for one request.
///
/// The input has the number of the endpoint in two bytes, a byte for the caller and the media type, and four lines: the
/// path parameters with slashes between them, the query, the value of `If-Match`, and the body.
pub(crate) fn run(data: &[u8]) {
    let Some((head, lines)) = data.split_at_checked(3) else {
        return;
    };
    WORLD.with_borrow_mut(|world| {
        if world
            .as_ref()
            .is_none_or(|world| world.requests > MAX_REQUESTS)
        {
            *world = None;
            *world = Some(World::new());
        }
        if let Some(world) = world {
            world.check(head, lines);
        }
    });
}

/// Returns the example request of every endpoint.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let world = World::new();
    let endpoints = world.endpoints.iter().enumerate();
    endpoints
        .map(|(number, target)| seed(number, &target.operation))
        .collect()
}

fn seed(number: usize, operation: &Value) -> Vec<u8> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let query = parameters.filter(|parameter| parameter["in"] == "query");
    let query = query.filter_map(|parameter| {
        let value = parameter["schema"]["examples"][0].as_str()?;
        Some(format!("{}={value}", parameter["name"].as_str()?))
    });
    let query = query.collect::<Vec<_>>().join("&");
    let body = &operation["requestBody"]["content"]["application/json"]["example"];
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let number = u16::try_from(number).unwrap_or_default().to_be_bytes();
    let mut seed = vec![number[0], number[1], 0];
    seed.extend_from_slice(format!("\n{query}\n\n{body}").as_bytes());
    seed
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.unwrap();
        let suite = runtime.block_on(suite(1));
        let services = [
            suite.iam(),
            suite.registry(),
            suite.provisioning(),
            suite.cli(),
            suite.billing(),
            suite.stacks(),
        ];
        let endpoints = services.iter().flat_map(targets).collect();
        let registry = &services[1];
        let create = |path: &str, body: Value| {
            let request = request(Method::POST, path, MEDIA_TYPES[0], body.to_string());
            let created = runtime.block_on(send(registry, with_service_key(request)));
            created
                .map(|answer| answer.text("id").to_owned())
                .unwrap_or_default()
        };
        let platform = create(
            "/api/v1/platforms",
            json!({ "name": "Engines", "slug": "engines" }),
        );
        let entities = format!("/api/v1/platforms/{platform}/entities");
        let entity = create(
            &entities,
            json!({ "name": "Ada", "slug": "ada", "type": "tenant" }),
        );
        assert!(!entity.is_empty(), "the records could not be created");
        Self {
            runtime,
            _suite: suite,
            endpoints,
            ids: vec![("{platformId}", platform), ("{entityId}", entity)],
            requests: 0,
        }
    }

    fn check(&mut self, head: &[u8], lines: &[u8]) {
        let number = usize::from(u16::from_be_bytes([head[0], head[1]]));
        let target = &self.endpoints[number % self.endpoints.len()];
        let choice = usize::from(head[2]);
        let mut lines = lines.splitn(4, |byte| *byte == b'\n');
        let mut next = || lines.next().unwrap_or_default();
        let (parameters, query, if_match, body) = (next(), next(), next(), next());
        let uri = self.uri(target, parameters, query);
        let media_type = MEDIA_TYPES[choice % MEDIA_TYPES.len()];
        let build = |body: Vec<u8>| {
            let mut request = request(target.method.clone(), &uri, media_type, body);
            if let Ok(value) = http::HeaderValue::from_bytes(if_match)
                && !value.is_empty()
            {
                request.headers_mut().insert("if-match", value);
            }
            if choice < 128 {
                with_service_key(request)
            } else {
                request
            }
        };
        let Some(answer) = self
            .runtime
            .block_on(send(&target.service, build(body.to_vec())))
        else {
            return;
        };
        self.requests += 1;
        target.assert_documented(&answer);
        let is_refusal = matches!(answer.status.as_u16(), 400 | 403 | 404 | 413 | 415);
        if is_refusal && media_type == MEDIA_TYPES[0] && !body.is_empty() {
            let padded = [b" \n", body, b"\t "].concat();
            let again = self.runtime.block_on(send(&target.service, build(padded)));
            let again = again.map(|again| again.status);
            assert_eq!(again, Some(answer.status), "spaces change the response");
        }
    }

    /// Returns the path with its parameters, and the query. An empty parameter becomes the id of a record.
    fn uri(&self, target: &Target, parameters: &[u8], query: &[u8]) -> String {
        let parameters = String::from_utf8_lossy(parameters);
        let mut parameters = parameters.split('/');
        let segments = target.path.split('/').map(|segment| {
            if !segment.starts_with('{') {
                return segment.to_owned();
            }
            let text = parameters.next().unwrap_or_default();
            let own = self.ids.iter().find(|(name, _)| *name == segment);
            match (text, own) {
                ("", Some((_, id))) => id.clone(),
                ("", None) => "unknown".to_owned(),
                (text, _) => utf8_percent_encode(text, NON_ALPHANUMERIC).to_string(),
            }
        });
        let path = segments.collect::<Vec<_>>().join("/");
        let query = String::from_utf8_lossy(query);
        // A long poll would wait in real time.
        let pairs = query
            .split('&')
            .filter(|pair| !pair.starts_with("wait") && !pair.is_empty());
        let allowed =
            |c: char| c.is_ascii_graphic() && !matches!(c, '#' | '"' | '<' | '>' | '`' | '{' | '}');
        let encode = |c: char| {
            if allowed(c) {
                c.to_string()
            } else {
                utf8_percent_encode(c.encode_utf8(&mut [0; 4]), NON_ALPHANUMERIC).to_string()
            }
        };
        let query: String = pairs
            .collect::<Vec<_>>()
            .join("&")
            .chars()
            .map(encode)
            .collect();
        format!("{path}?{query}")
    }
}

impl Target {
    fn assert_documented(&self, answer: &Answer) {
        let (status, json) = (answer.status, &answer.json);
        let context = format!("{} {}: {status} {json}", self.method, self.path);
        assert!(status.as_u16() != 500, "the service fails: {context}");
        let response = &self.operation["responses"][status.as_str()];
        assert!(
            !response.is_null(),
            "the status is not documented: {context}"
        );
        let codes = response["x-codes"].as_array().into_iter().flatten();
        let mut codes = codes.filter_map(Value::as_str).peekable();
        let code = answer.code();
        let is_documented =
            code.is_empty() || codes.peek().is_none() || codes.any(|one| one == code);
        assert!(is_documented, "the code is not documented: {context}");
        let media_type = answer
            .headers
            .get("content-type")
            .and_then(|value| value.to_str().ok());
        if let Some(media_type) = media_type {
            let is_documented = response["content"].get(media_type).is_some();
            assert!(is_documented, "{media_type} is not documented: {context}");
        }
    }
}

fn targets(service: &Service) -> Vec<Target> {
    let document: Value = serde_json::from_slice(&service.openapi().unwrap()).unwrap();
    let endpoints = service.endpoints().iter().map(|row| {
        let method = row.method().as_str().to_ascii_lowercase();
        Target {
            service: service.clone(),
            method: row.method().clone(),
            path: row.path(),
            operation: document["paths"][row.path()][method].clone(),
        }
    });
    endpoints.collect()
}
