//! Tests of running workers and their bindings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use core_domain::kernel::Secret;
use core_domain::port::{Infrastructure, ObjectRequest, SetSecrets};
use core_domain::registry::ResourceType;
use core_local::{SiteBody, WorkerdOptions};
use http::{Request, Response};
use http_body_util::Full;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::host::{self, BY_PATH, body, get, world_by_path};
use crate::hostnames::to;
use crate::log::Log;
use crate::support::{OWNER, World, request, resource, script, workerd, world_of};

/// Creates a world with running workers. Returns `None` if `workerd` is not installed.
pub(crate) async fn running(options: WorkerdOptions) -> Option<World> {
    let workerd = workerd()?;
    let set = |config: &mut core_local::LocalConfig| {
        config.sites.by_path = Some(BY_PATH.to_owned());
        config.workerd = Some(workerd);
        config.workers = options;
    };
    Some(world_of(set).await)
}

async fn create(world: &World, name: &str, config: Value) {
    let request = ObjectRequest {
        config,
        ..request(ResourceType::Worker, name)
    };
    world.infra.create(&request).await.unwrap();
}

/// Creates a worker that responds with this JavaScript expression.
async fn worker(world: &World, name: &str, expression: &str) {
    let text = format!(
        "export default {{ async fetch(request, env) {{ return new Response({expression}); }} }};"
    );
    create(world, name, script(&text, &json!([]))).await;
}

async fn answer(world: &World, name: &str) -> (u16, String) {
    let answer = get(world, &format!("http://{name}.localhost:8090/")).await;
    (answer.status().as_u16(), body(answer).await)
}

async fn send(world: &World, request: Request<Full<Bytes>>) -> Response<SiteBody> {
    world.infra.site_host().oneshot(request).await.unwrap()
}

/// Returns the `workerd` processes that run in a folder of the world, without their guards.
#[cfg(target_os = "linux")]
pub(crate) fn processes(folder: &Path) -> Vec<PathBuf> {
    let folder = folder.canonicalize().unwrap();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let here = all.map(|entry| entry.path()).filter(|process| {
        let works_in = std::fs::read_link(process.join("cwd"));
        let program = std::fs::read_link(process.join("exe")).unwrap_or_default();
        works_in.is_ok_and(|path| path.starts_with(&folder)) && program.ends_with("workerd")
    });
    here.collect()
}

#[cfg(target_os = "linux")]
fn kill(process: &Path) {
    let pid = process.file_name().unwrap();
    let status = std::process::Command::new("kill")
        .arg("-9")
        .arg(pid)
        .status();
    assert!(status.unwrap().success());
}

#[tokio::test]
async fn worker_responds_with_503_without_workerd() {
    let world = world_by_path().await;
    worker(&world, "acme-api", "1").await;
    for url in [
        "http://acme-api.localhost/x",
        &format!("{BY_PATH}/acme-api/x"),
    ] {
        let answer = get(&world, url).await;
        assert_eq!(answer.status(), 503, "{url}");
        assert!(body(answer).await.contains("npm install workerd"), "{url}");
    }
}

/// Creates a world with a worker that runs `bindings.js`, with all its bindings.
async fn world_with_bindings() -> Option<World> {
    let world = running(WorkerdOptions::default()).await?;
    for (kind, name) in [
        (ResourceType::Kv, "acme-cache"),
        (ResourceType::D1, "acme-db"),
        (ResourceType::R2, "acme-assets"),
        (ResourceType::Queue, "acme-events"),
    ] {
        world.infra.create(&request(kind, name)).await.unwrap();
    }
    world.project("acme-site").await;
    world
        .deploy("acme-site", "d-1", &[("index.html", "front")])
        .await;
    let echo = "[request.method, request.url, await request.text(), request.headers.get('x-core-binding')].join()";
    worker(&world, "acme-other", echo).await;
    let binding = |name: &str, kind: &str, resource: &str| json!({ "name": name, "type": kind, "resource": resource });
    let config = json!({
        "mainModule": "index.js",
        "modules": { "index.js": include_str!("bindings.js") },
        "bindings": [
            binding("CACHE", "kv", "acme-cache"),
            binding("DB", "d1", "acme-db"),
            binding("ASSETS", "r2", "acme-assets"),
            binding("EVENTS", "queue", "acme-events"),
            binding("OTHER", "worker", "acme-other"),
            binding("SITE", "pages", "acme-site"),
        ],
        "vars": { "GREETING": "grüße \"all\"\n\\", "LIMITS": { "n": [1, null] }, "TOKEN": "hidden by the secret" },
    });
    create(&world, "acme-api", config).await;
    set_token(&world, "open sesame").await;
    Some(world)
}

async fn set_token(world: &World, value: &str) {
    let secrets = SetSecrets {
        resource: resource(ResourceType::Worker, "acme-api"),
        owner: OWNER.to_owned(),
        secrets: vec![("TOKEN".to_owned(), Secret::new(value))],
        deleted: Vec::new(),
    };
    world.infra.set_secrets(&secrets).await.unwrap();
}

async fn call(world: &World, name: &str) -> Value {
    let answer = get(world, &format!("http://acme-api.localhost/{name}")).await;
    let status = answer.status();
    let text = body(answer).await;
    assert_eq!(status, 200, "{name}: {text}");
    serde_json::from_str(&text).unwrap()
}

/// Returns the error that a call throws.
async fn thrown(world: &World, name: &str) -> String {
    let answer = get(world, &format!("http://acme-api.localhost/{name}")).await;
    assert_eq!(answer.status(), 500, "{name}");
    body(answer).await
}

#[tokio::test]
async fn script_can_use_variables_secrets_workers_and_sites() {
    let Some(world) = world_with_bindings().await else {
        return;
    };
    let vars = json!(["grüße \"all\"\n\\", { "n": [1, null] }, "open sesame"]);
    assert_eq!(call(&world, "vars").await, vars);
    set_token(&world, "changed").await;
    assert_eq!(call(&world, "vars").await[2], "changed");
    let asked = json!(["POST,http://other/path?q=1,ping,", 200, "front"]);
    assert_eq!(call(&world, "service").await, asked);
    // Addresses that are not public are unreachable.
    assert!(thrown(&world, "outside").await.contains("Error"));
}

#[tokio::test]
async fn kv_binding_uses_the_namespace_of_the_provider() {
    let Some(world) = world_with_bindings().await else {
        return;
    };
    let expiration = 1_795_000_060;
    let expected = json!({
        "value": "value", "metadata": { "by": "test" },
        "first": [{ "name": "a/b ü", "expiration": expiration, "metadata": { "by": "test" } }],
        "complete": [false, true], "rest": ["b"], "many": [["b", "2"], ["none", null]], "gone": null,
    });
    assert_eq!(call(&world, "kv").await, expected);
    let kv = world.infra.kv("acme-cache").await.unwrap();
    assert_eq!(kv.get("a/b ü").await.unwrap().unwrap(), b"value");
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(kv.get("a/b ü").await.unwrap(), None);
    assert!(thrown(&world, "kv_refused").await.contains("413"));
}

#[tokio::test]
async fn d1_binding_runs_transactions_and_cannot_access_other_files() {
    let Some(world) = world_with_bindings().await else {
        return;
    };
    let expected = json!({
        "changes": 1, "last": 1, "first": 1.5, "raw": [["eve"], ["zoe"]],
        "all": [
            { "id": 1, "name": "ada", "data": [1, 255] },
            { "id": 2, "name": "eve", "data": null },
            { "id": 3, "name": "zoe", "data": null },
        ],
    });
    assert_eq!(call(&world, "d1").await, expected);
    let undone = call(&world, "d1_undone").await;
    assert_eq!(undone["left"], 0);
    assert!(
        undone["failed"].as_str().unwrap().contains("UNIQUE"),
        "{undone}"
    );
    assert_eq!(
        call(&world, "d1_attach").await,
        json!(["refused", "refused", "refused"])
    );
    assert!(thrown(&world, "d1_dump").await.contains("D1_DUMP_ERROR"));
}

#[tokio::test]
async fn r2_and_queue_bindings_use_the_stores_of_the_provider() {
    let Some(world) = world_with_bindings().await else {
        return;
    };
    let expected = json!({
        "text": "0123456789", "type": { "contentType": "text/plain", "cacheControl": "no-store" },
        "custom": { "by": "test" }, "piece": "234", "same": false, "kept": null,
        "listed": [["c.txt"], ["docs/"]], "pages": [2, true, ["docs/b.txt"]], "gone": null, "left": "c",
    });
    assert_eq!(call(&world, "r2").await, expected);
    assert!(
        thrown(&world, "r2_multipart")
            .await
            .contains("multipart uploads")
    );
    assert_eq!(call(&world, "queue").await, Value::Null);
    let queue = world.infra.queue("acme-events").await.unwrap();
    let messages = queue.pull(10, Duration::from_secs(60)).await.unwrap();
    let bodies: Vec<_> = messages
        .iter()
        .map(|message| message.body.as_slice())
        .collect();
    assert_eq!(bodies, [&b"{\"n\":1}"[..], b"two", b"{\"n\":3}"]);
}

#[tokio::test]
async fn binding_to_a_deleted_object_throws_and_the_worker_continues() {
    let Some(world) = world_with_bindings().await else {
        return;
    };
    let cache = resource(ResourceType::Kv, "acme-cache");
    world.infra.remove(&cache, OWNER).await.unwrap();
    assert!(thrown(&world, "kv").await.contains("no longer exists"));
    let mut foreign = request(ResourceType::Kv, "acme-cache");
    foreign.owner = "platform-2".to_owned();
    world.infra.create(&foreign).await.unwrap();
    assert!(thrown(&world, "kv").await.contains("no longer exists"));
    assert_eq!(call(&world, "queue").await, Value::Null);
}

#[tokio::test]
async fn requests_and_responses_are_forwarded_completely() {
    let Some(world) = running(WorkerdOptions::default()).await else {
        return;
    };
    let echo = "request.body, { status: 201, headers: { 'x-asked': [request.method, new URL(request.url).pathname + new URL(request.url).search, request.headers.get('x-from')].join() } }";
    worker(&world, "acme-api", echo).await;
    let route = to("api.example.org", ResourceType::Worker, "acme-api");
    world.infra.route_hostname(&route).await.unwrap();
    let sent = vec![b'x'; 3 * 1024 * 1024];
    for (url, path) in [
        ("http://acme-api.localhost:8090/a%2Fb/?q=1", "/a%2Fb/?q=1"),
        ("http://api.example.org/a/", "/a/"),
        (&format!("{BY_PATH}/acme-api/a?q"), "/a?q"),
        (&format!("{BY_PATH}/acme-api"), "/"),
    ] {
        let request = Request::put(url).header("x-from", "test");
        let request = request.body(Full::from(sent.clone())).unwrap();
        let answer = send(&world, request).await;
        assert_eq!(answer.status(), 201, "{url}");
        let asked = answer.headers()["x-asked"].to_str().unwrap();
        assert_eq!(asked, format!("PUT,{path},test"));
        assert_eq!(body(answer).await.as_bytes(), sent);
    }
}

#[tokio::test]
async fn startup_error_appears_only_in_the_log() {
    let Some(world) = running(WorkerdOptions::default()).await else {
        return;
    };
    worker(&world, "acme-good", "'good'").await;
    create(
        &world,
        "acme-bad",
        script("export default { fetch( {}", &json!([])),
    )
    .await;
    let (log, _collecting) = Log::collect();
    for _ in 0..3 {
        let plain = "This worker failed. See the server log for the reason.\n";
        assert_eq!(answer(&world, "acme-bad").await, (502, plain.to_owned()));
        let text = log.text();
        assert!(text.contains("worker=acme-bad"), "{text}");
        assert!(
            text.contains("SyntaxError") && text.contains("index.js:1"),
            "{text}"
        );
        assert!(
            !text.contains(world.folder.path().to_str().unwrap()),
            "{text}"
        );
        assert_eq!(answer(&world, "acme-good").await, (200, "good".to_owned()));
    }
    worker(&world, "acme-bad", "'repaired'").await;
    assert_eq!(
        answer(&world, "acme-bad").await,
        (200, "repaired".to_owned())
    );
}

#[tokio::test]
async fn startup_error_in_the_log_hides_secrets() {
    let Some(world) = running(WorkerdOptions::default()).await else {
        return;
    };
    let throwing =
        "import { env } from 'cloudflare:workers'; throw new Error('token ' + env.TOKEN);";
    create(&world, "acme-api", script(throwing, &json!([]))).await;
    set_token(&world, "open sesame").await;
    let (log, _collecting) = Log::collect();
    let (status, text) = answer(&world, "acme-api").await;
    assert_eq!(status, 502);
    assert!(!text.contains("token"), "{text}");
    assert!(log.text().contains("token ***"), "{}", log.text());
}

#[tokio::test]
async fn worker_can_neither_read_nor_set_iam_cookies() {
    let Some(world) = running(WorkerdOptions::default()).await else {
        return;
    };
    let echo = "request.headers.get('cookie'), { headers: [['set-cookie', 'better-auth.session_token=planted'], ['set-cookie', 'theme=light']] }";
    worker(&world, "acme-api", echo).await;
    let cookies = "better-auth.session_token=secret; theme=dark; __Secure-core.device=secret";
    for url in [
        "http://acme-api.localhost/",
        &format!("{BY_PATH}/acme-api/"),
    ] {
        let answer = host::send(&world, "GET", url, &[("cookie", cookies)]).await;
        let set: Vec<_> = answer.headers().get_all("set-cookie").iter().collect();
        assert_eq!(set, ["theme=light"]);
        assert_eq!(body(answer).await, "theme=dark");
    }
}

#[tokio::test]
async fn next_request_uses_the_new_script_or_finds_no_worker() {
    let Some(world) = running(WorkerdOptions::default()).await else {
        return;
    };
    for text in ["one", "two", "one"] {
        worker(&world, "acme-api", &format!("'{text}'")).await;
        assert_eq!(answer(&world, "acme-api").await, (200, text.to_owned()));
    }
    let target = resource(ResourceType::Worker, "acme-api");
    world.infra.remove(&target, OWNER).await.unwrap();
    assert_eq!(answer(&world, "acme-api").await.0, 404);
}

#[tokio::test]
async fn hanging_worker_times_out_and_is_replaced() {
    let options = WorkerdOptions {
        answer_timeout: Duration::from_secs(3),
        ..WorkerdOptions::default()
    };
    let Some(world) = running(options).await else {
        return;
    };
    let loops = "await (async () => { if (new URL(request.url).pathname === '/loop') for (;;); return 'fine'; })()";
    worker(&world, "acme-api", loops).await;
    let silent = get(&world, "http://acme-api.localhost/loop").await;
    assert_eq!(silent.status(), 504);
    // A busy machine may take longer than the timeout to start a worker.
    while answer(&world, "acme-api").await != (200, "fine".to_owned()) {}
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn number_of_processes_is_limited() {
    let options = WorkerdOptions {
        processes: 2,
        ..WorkerdOptions::default()
    };
    let Some(world) = running(options).await else {
        return;
    };
    for name in ["acme-a", "acme-b", "acme-c"] {
        worker(&world, name, &format!("'{name}'")).await;
    }
    for name in ["acme-a", "acme-b", "acme-c", "acme-a", "acme-b"] {
        assert_eq!(answer(&world, name).await, (200, name.to_owned()));
        // A process that is being stopped may still run for a moment.
        while processes(world.folder.path()).len() > 2 {
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn idle_worker_is_stopped_and_started_again() {
    let options = WorkerdOptions {
        idle: Duration::from_millis(100),
        ..WorkerdOptions::default()
    };
    let Some(world) = running(options).await else {
        return;
    };
    worker(&world, "acme-api", "'back'").await;
    for _ in 0..2 {
        assert_eq!(answer(&world, "acme-api").await, (200, "back".to_owned()));
        while !processes(world.folder.path()).is_empty() {
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn killed_process_is_restarted_without_the_parent_environment() {
    let Some(world) = running(WorkerdOptions::default()).await else {
        return;
    };
    worker(&world, "acme-api", "'back'").await;
    for _ in 0..2 {
        assert_eq!(answer(&world, "acme-api").await, (200, "back".to_owned()));
        let [process] = &*processes(world.folder.path()) else {
            panic!("one process")
        };
        let environment = std::fs::read(process.join("environ")).unwrap();
        let environment = String::from_utf8(environment).unwrap();
        assert!(
            !environment.contains("CARGO") && !environment.contains("HOME"),
            "{environment}"
        );
        kill(process);
        while !processes(world.folder.path()).is_empty() {
            tokio::task::yield_now().await;
        }
        // The first request may report the end of the process. The others get a new process after a pause.
        while answer(&world, "acme-api").await.0 != 200 {
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn stop_workers_deletes_their_files_and_prevents_restarts() {
    let Some(world) = running(WorkerdOptions::default()).await else {
        return;
    };
    worker(&world, "acme-api", "'here'").await;
    assert_eq!(answer(&world, "acme-api").await.0, 200);
    world.infra.stop_workers().await;
    assert!(processes(world.folder.path()).is_empty());
    assert!(world.staging().is_empty());
    assert_eq!(answer(&world, "acme-api").await.0, 503);
}
