//! Every endpoint of every service against every kind of credential and against hostile input. Driven by the tables of
//! endpoints themselves, so that a new row is tested from its first day.

use core_http::kernel::{Access, Endpoint, Service};
use core_suite::Suite;
use http::Method;
use serde_json::{Value, json};

use crate::people::{SERVICE_KEY, Signed, signed_up};
use crate::support::{Answer, Call};

/// What no stranger may see.
const SECRET_NAME: &str = "Analytical Engines";

struct World {
    suite: Suite,
    owner: Signed,
    stranger: Signed,
    /// Path parameters that name what belongs to the owner.
    names: Vec<(&'static str, String)>,
}

impl World {
    async fn new() -> Self {
        let suite = crate::people::builder(Suite::builder().in_memory())
            .build()
            .await
            .unwrap();
        let owner = signed_up(&suite, "engines", SECRET_NAME).await;
        let stranger = signed_up(&suite, "looms", "Looms").await;
        let mut world = Self {
            suite,
            owner,
            stranger,
            names: Vec::new(),
        };
        world.name_things().await;
        world
    }

    async fn first(&self, path: &str, field: &str) -> String {
        let rows = Call::get(path)
            .bearer(&self.owner.token)
            .to(&self.suite.gateway())
            .await
            .expect(200)
            .json();
        rows["data"][0][field].as_str().unwrap().to_owned()
    }

    async fn name_things(&mut self) {
        let platform = self.owner.platform.clone();
        let below = format!("/api/v1/platforms/{platform}");
        let jobs = format!("/api/v1/provisioning/jobs?platformId={platform}");
        let job = self.first(&jobs, "jobId").await;
        self.owner.job_done(&self.suite, &job).await;
        let template = json!({ "name": "web", "displayName": "Web", "description": "A site." });
        let publish = Call::post("/api/v1/stacks", &template).bearer(SERVICE_KEY);
        publish.to(&self.suite.gateway()).await.expect(201);
        self.names = vec![
            (
                "entityId",
                self.first(&format!("{below}/entities"), "id").await,
            ),
            (
                "resourceId",
                self.first(&format!("{below}/resources"), "id").await,
            ),
            ("jobId", job),
            ("name", "web".to_owned()),
            ("version", "1.0.0".to_owned()),
            ("slug", "engines".to_owned()),
            ("platformId", platform),
        ];
    }

    fn services(&self) -> Vec<(&'static str, Service)> {
        vec![
            ("iam", self.suite.iam()),
            ("registry", self.suite.registry()),
            ("provisioning", self.suite.provisioning()),
            ("cli", self.suite.cli()),
            ("stacks", self.suite.stacks()),
        ]
    }

    /// The row's path with the owner's things in it; what is not known is an id of nothing.
    fn path(&self, row: &Endpoint) -> String {
        let named = |segment: &str| {
            let Some(parameter) = segment.strip_prefix('{').and_then(|s| s.strip_suffix('}'))
            else {
                return segment.to_owned();
            };
            let known = self.names.iter().find(|(name, _)| *name == parameter);
            known.map_or_else(
                || "0198c0de-0000-7000-8000-000000000000".to_owned(),
                |(_, value)| value.clone(),
            )
        };
        row.path()
            .split('/')
            .map(named)
            .collect::<Vec<_>>()
            .join("/")
    }

    /// The row's path as the outside writes it: the service's prefix before the documented path.
    fn through_gateway(&self, service: &str, row: &Endpoint) -> String {
        let prefix = match service {
            "registry" => "platforms",
            other => other,
        };
        format!("/api/v1/{prefix}{}", self.path(row))
    }
}

fn takes_body(row: &Endpoint) -> bool {
    [Method::POST, Method::PUT, Method::PATCH].contains(row.method())
}

fn call(row: &Endpoint, path: &str) -> Call {
    let call = Call::new(row.method().clone(), path);
    if takes_body(row) {
        return call.json(&json!({}));
    }
    call
}

/// An error in the envelope that says what it is.
#[track_caller]
fn refused(what: &str, answer: &Answer, allowed: &[u16]) {
    let status = answer.status.as_u16();
    let text = String::from_utf8_lossy(&answer.body);
    assert!(allowed.contains(&status), "{what}: {status} {text}");
    let body: Value =
        serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{what}: {text}"));
    assert!(body["error"]["code"].is_string(), "{what}: {text}");
    assert!(
        !text.contains(SECRET_NAME),
        "{what} shows what it must not: {text}"
    );
}

fn describe(service: &str, row: &Endpoint) -> String {
    format!("{service} {} {}", row.method(), row.path())
}

#[tokio::test]
async fn without_a_credential_or_with_a_wrong_one_nobody_gets_in() {
    let world = World::new().await;
    for (name, service) in world.services() {
        for row in service.endpoints() {
            if row.access() == Access::Public {
                continue;
            }
            let what = describe(name, row);
            let asked = call(row, &world.path(row));
            refused(&what, &asked.to(&service).await, &[401]);
            let wrong = asked.bearer("wrong-credential");
            refused(&what, &wrong.to(&service).await, &[401]);
        }
    }
}

#[tokio::test]
async fn the_gateway_asks_everybody_for_a_credential_on_every_route() {
    let world = World::new().await;
    for (name, service) in world.services() {
        for row in service.endpoints() {
            let what = describe(name, row);
            let asked = call(row, &world.through_gateway(name, row));
            if row.path().starts_with("/internal/") {
                let operator = asked.bearer(SERVICE_KEY);
                refused(&what, &operator.to(&world.suite.gateway()).await, &[404]);
                continue;
            }
            let answer = asked.to(&world.suite.gateway()).await;
            refused(&what, &answer, &[401]);
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{what}");
        }
    }
}

#[tokio::test]
async fn a_foreign_tenant_finds_nothing_of_another() {
    let world = World::new().await;
    for (name, service) in world.services() {
        for row in service.endpoints() {
            let path = world.through_gateway(name, row);
            let theirs = row.path().contains("{platformId}") || row.path().contains("{jobId}");
            if !theirs || row.path().starts_with("/internal/") {
                continue;
            }
            let what = describe(name, row);
            let asked = call(row, &path).bearer(&world.stranger.token);
            let answer = asked.to(&world.suite.gateway()).await;
            // Routes for operators refuse by the caller alone; a body that says nothing is refused before it is asked
            // whose platform it is.
            let allowed: &[u16] = if takes_body(row) {
                &[400, 403, 404, 415]
            } else {
                &[403, 404]
            };
            refused(&what, &answer, allowed);
        }
    }
    let mine = format!("/api/v1/platforms/{}", world.owner.platform);
    let still = Call::get(mine).bearer(&world.owner.token);
    let still = still.to(&world.suite.gateway()).await.expect(200).json();
    assert_eq!(still["status"], "active");
}

#[tokio::test]
async fn whatever_is_sent_is_answered_with_an_error_that_says_what_it_is() {
    let world = World::new().await;
    let bodies: Vec<(&str, Vec<u8>)> = vec![
        ("application/json", b"".to_vec()),
        ("application/json", b"{".to_vec()),
        ("application/json", b"null".to_vec()),
        ("application/json", b"[1,2]".to_vec()),
        (
            "application/json",
            b"{\"name\":7,\"slug\":[],\"platformId\":{},\"reason\":false,\"type\":1}".to_vec(),
        ),
        (
            "application/json",
            format!("{{\"name\":\"{}\"}}", "x".repeat(300_000)).into_bytes(),
        ),
        (
            "application/json",
            [b"{\"a\":".repeat(2_000), b"1".to_vec()].concat(),
        ),
        (
            "application/json",
            b"{\"name\":\"a\\u0000b\",\"name\":\"twice\"}".to_vec(),
        ),
        ("application/json", vec![0xff, 0xfe, b'{', b'}']),
        ("text/plain", b"name=x".to_vec()),
    ];
    for (name, service) in world.services() {
        for row in service.endpoints() {
            if !takes_body(row) || row.path().starts_with("/internal/") {
                continue;
            }
            for (content_type, body) in &bodies {
                let what = describe(name, row);
                let answer = Call::new(row.method().clone(), world.path(row))
                    .bearer(SERVICE_KEY)
                    .raw(content_type, body.clone())
                    .to(&service)
                    .await;
                let status = answer.status.as_u16();
                // Where nothing of the body is required, nothing may be missing in it.
                let shown: String = String::from_utf8_lossy(body).chars().take(60).collect();
                assert!(status < 500, "{what} answers {status} to {shown:?}");
                if !answer.status.is_success() {
                    refused(&what, &answer, &[400, 401, 403, 404, 409, 413, 415, 422]);
                }
            }
        }
    }
}

#[tokio::test]
async fn whatever_stands_in_a_path_or_query_is_answered_with_an_error_that_says_what_it_is() {
    let world = World::new().await;
    let long = "x".repeat(4_000);
    let odd = [
        "%00",
        "%ff",
        "%C3%A4",
        "..%2f..",
        "'%20OR%201=1--",
        "-1",
        &long,
    ];
    let queries = [
        "limit=0",
        "limit=x",
        "limit=99999999999999999999",
        "cursor=%00",
        "cursor=abc",
        "limit=1&limit=2",
        "%00=1",
        "wait=0",
        "wait=x",
        "status=nonsense",
        "from=yesterday",
        "platformId=%00",
        "sort=;drop",
    ];
    for (name, service) in world.services() {
        for row in service.endpoints() {
            let what = describe(name, row);
            if row.path().contains('{') {
                for text in odd {
                    let filled = row
                        .path()
                        .split('/')
                        .map(|s| if s.starts_with('{') { text } else { s });
                    let path = filled.collect::<Vec<_>>().join("/");
                    let answer = call(row, &path).bearer(SERVICE_KEY).to(&service).await;
                    assert!(
                        answer.status.as_u16() < 500,
                        "{what} answers {} to {path}",
                        answer.status
                    );
                }
            }
            for query in queries {
                let path = format!("{}?{query}", world.path(row));
                let asked = call(row, &path);
                if row.method() == Method::GET {
                    let answer = asked.bearer(SERVICE_KEY).to(&service).await;
                    assert!(
                        answer.status.as_u16() < 500,
                        "{what} answers {} to {query}",
                        answer.status
                    );
                }
            }
        }
    }
}
