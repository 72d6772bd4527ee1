//! Tests of the logs of workers and sites, through the port and real files.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

use core_domain::cli::{LogContent, LogId, LogLevel, LogLine};
use core_domain::kernel::Secret;
use core_domain::port::{
    Infrastructure, LogListener, LogQuery, LogReader, LogStart, ObjectRequest, ResourceLogs,
    SetSecrets,
};
use core_domain::registry::ResourceType;
use core_local::{ClientAddress, LocalConfig, WorkerdOptions};
use serde_json::json;
use tokio::sync::Notify;

use crate::host::{BY_PATH, body, get};
use crate::running::running;
use crate::support::{OWNER, World, request, resource, script, world, world_of};

const SITE: &str = "http://acme-site.localhost:8090";

/// Signals new lines to a test.
#[derive(Debug, Default)]
struct NewLines(Notify);

impl LogListener for NewLines {
    fn on_lines(&self) {
        self.0.notify_one();
    }
}

/// A reader that waits for new lines.
struct Follower {
    reader: Box<dyn LogReader>,
    listener: Arc<NewLines>,
}

impl Follower {
    async fn open(world: &World, start: LogStart) -> Self {
        let listener = Arc::new(NewLines::default());
        let query = LogQuery {
            listener: Some(Arc::clone(&listener) as _),
            ..query(None, start)
        };
        let reader = logs(world).open(query).await.unwrap().unwrap();
        Self { reader, listener }
    }

    /// Returns at least this number of lines.
    async fn lines(&mut self, count: usize) -> Vec<LogLine> {
        let mut lines = Vec::new();
        loop {
            lines.extend(remaining(self.reader.as_mut()).await);
            if lines.len() >= count {
                return lines;
            }
            self.listener.0.notified().await;
        }
    }
}

fn logs(world: &World) -> Arc<dyn ResourceLogs> {
    world.infra.logs().unwrap()
}

fn query(resource: Option<&str>, start: LogStart) -> LogQuery {
    LogQuery {
        owner: OWNER.to_owned(),
        resource: resource.map(str::to_owned),
        start,
        follow: true,
        listener: None,
    }
}

/// Reads until there are no more lines at present.
async fn remaining(reader: &mut dyn LogReader) -> Vec<LogLine> {
    let mut lines = Vec::new();
    loop {
        let batch = reader.next().await.unwrap();
        lines.extend(batch.lines);
        if !batch.has_more {
            return lines;
        }
    }
}

/// Returns the existing lines.
async fn existing(world: &World, resource: Option<&str>, start: LogStart) -> Vec<LogLine> {
    let reader = logs(world).open(query(resource, start)).await.unwrap();
    remaining(reader.unwrap().as_mut()).await
}

/// Returns resource, path and status of a line.
fn request_line(line: &LogLine) -> String {
    match &line.content {
        LogContent::Request { path, status, .. } => format!("{} {path} {status}", line.resource),
        LogContent::Console { text, .. } => format!("{} {text}", line.resource),
    }
}

fn request_lines(lines: &[LogLine]) -> Vec<String> {
    lines.iter().map(request_line).collect()
}

async fn visit(world: &World, paths: impl IntoIterator<Item = String>) {
    for path in paths {
        get(world, &format!("{SITE}{path}")).await;
    }
}

fn paths(numbers: std::ops::Range<u32>) -> impl Iterator<Item = String> {
    numbers.map(|number| format!("/{number}"))
}

/// Creates a world with a site that has a front page.
async fn world_with_site(change: impl FnOnce(&mut LocalConfig)) -> World {
    let world = world_of(change).await;
    world.project("acme-site").await;
    world
        .deploy("acme-site", "d-1", &[("index.html", "front")])
        .await;
    world
}

/// Returns the paths of the files of the site's log.
fn files(world: &World) -> Vec<PathBuf> {
    let folder = "pages/acme-site/logs";
    let mut names = world.names(folder);
    names.retain(|name| name != ".lock");
    names.sort_unstable();
    let folder = world.folder.path().join("infra").join(folder);
    names.into_iter().map(|name| folder.join(name)).collect()
}

#[tokio::test]
async fn requests_are_logged_without_query_strings_and_client_addresses() {
    let world = world_with_site(|config| {
        config.sites.by_path = Some(BY_PATH.to_owned());
        config.client_address = Some(ClientAddress::new(|_, _| Some(Ipv4Addr::LOCALHOST.into())));
    })
    .await;
    get(&world, &format!("{SITE}/?token=secret")).await;
    get(&world, &format!("{SITE}/none%20here?x")).await;
    get(&world, &format!("{BY_PATH}/acme-site/a/b?x")).await;
    get(&world, "http://acme-none.localhost:8090/").await;
    let lines = existing(&world, None, LogStart::Tail(10)).await;
    let wanted = [
        "acme-site / 200",
        "acme-site /none%20here 404",
        "acme-site /a/b 404",
    ];
    assert_eq!(request_lines(&lines), wanted);
    let LogContent::Request {
        method,
        client_address,
        ..
    } = &lines[0].content
    else {
        panic!("{lines:?}");
    };
    assert_eq!((method.as_str(), client_address), ("GET", &None));
}

#[tokio::test]
async fn client_addresses_are_logged_if_the_setting_says_so() {
    let address: IpAddr = Ipv4Addr::new(192, 0, 2, 1).into();
    let world = world_with_site(|config| {
        config.logs.client_addresses = true;
        config.client_address = Some(ClientAddress::new(move |_, headers| {
            headers.contains_key("host").then_some(address)
        }));
    })
    .await;
    visit(&world, paths(1..2)).await;
    let request = http::Request::get("/2")
        .header("host", "acme-site.localhost:8090")
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    let host = world.infra.site_host();
    drop(tower::ServiceExt::oneshot(host, request).await.unwrap());
    let lines = existing(&world, None, LogStart::Tail(2)).await;
    let addresses = lines.iter().map(|line| match &line.content {
        LogContent::Request { client_address, .. } => client_address.as_deref(),
        LogContent::Console { .. } => panic!("{line:?}"),
    });
    let addresses: Vec<_> = addresses.collect();
    assert_eq!(addresses, [None, Some("192.0.2.1")], "the function decides");
}

#[tokio::test]
async fn lines_survive_a_restart_and_ids_grow() {
    let world = world_with_site(|_| {}).await;
    visit(&world, paths(1..4)).await;
    let before = existing(&world, None, LogStart::Tail(10)).await;
    // The clock of the world has not moved.
    let world = world.reopen().await;
    assert_eq!(existing(&world, None, LogStart::Tail(10)).await, before);
    visit(&world, paths(4..6)).await;
    let last = before.last().unwrap().id;
    let after = existing(&world, None, LogStart::After(last)).await;
    let wanted = ["acme-site /4 404", "acme-site /5 404"];
    assert_eq!(request_lines(&after), wanted);
    let all = existing(&world, None, LogStart::Tail(1_000)).await;
    assert!(all.is_sorted_by(|one, next| one.id < next.id));
    assert_eq!(all.len(), 5);
}

#[tokio::test]
async fn lines_of_several_objects_are_merged_in_their_order() {
    let world = world_with_site(|_| {}).await;
    world.project("acme-docs").await;
    world
        .deploy("acme-docs", "d-1", &[("index.html", "")])
        .await;
    for number in 1..4 {
        get(&world, &format!("http://acme-docs.localhost:8090/{number}")).await;
        visit(&world, paths(number..number + 1)).await;
    }
    let lines = existing(&world, None, LogStart::Tail(3)).await;
    let wanted = ["acme-site /2 404", "acme-docs /3 404", "acme-site /3 404"];
    assert_eq!(request_lines(&lines), wanted);
    let lines = existing(&world, Some("acme-docs"), LogStart::Tail(2)).await;
    let wanted = ["acme-docs /2 404", "acme-docs /3 404"];
    assert_eq!(request_lines(&lines), wanted);
    assert!(existing(&world, None, LogStart::Tail(0)).await.is_empty());
}

#[tokio::test]
async fn objects_of_other_owners_and_without_logs_are_missing() {
    let world = world_with_site(|_| {}).await;
    let mut other = request(ResourceType::Worker, "other-api");
    other.owner = "platform-2".to_owned();
    world.infra.create(&other).await.unwrap();
    world
        .infra
        .create(&request(ResourceType::Kv, "acme-cache"))
        .await
        .unwrap();
    get(&world, "http://other-api.localhost:8090/").await;
    for name in ["other-api", "acme-cache", "acme-none", "../x", ""] {
        let query = query(Some(name), LogStart::Tail(1));
        assert!(logs(&world).open(query).await.unwrap().is_none(), "{name}");
    }
    assert!(existing(&world, None, LogStart::Tail(10)).await.is_empty());
}

#[tokio::test]
async fn log_is_removed_with_its_object() {
    let world = world_with_site(|_| {}).await;
    let mut follower = Follower::open(&world, LogStart::Tail(10)).await;
    visit(&world, paths(1..3)).await;
    follower.lines(2).await;
    let site = resource(ResourceType::Pages, "acme-site");
    world.infra.remove(&site, OWNER).await.unwrap();
    assert!(world.names("pages").is_empty());
    assert!(remaining(follower.reader.as_mut()).await.is_empty());

    world.project("acme-site").await;
    assert!(existing(&world, None, LogStart::Tail(10)).await.is_empty());
}

#[tokio::test]
async fn slow_reader_gets_the_number_of_lines_that_were_left_out() {
    let world = world_with_site(|config| config.logs.lines = 5).await;
    let mut follower = Follower::open(&world, LogStart::Tail(0)).await;
    visit(&world, paths(0..3)).await;
    assert_eq!(follower.lines(3).await.len(), 3);
    visit(&world, paths(3..33)).await;
    let last = existing(&world, None, LogStart::Tail(1)).await.remove(0);
    assert_eq!(files(&world).len(), 2);
    let lines = remaining(follower.reader.as_mut()).await;
    let shown = request_lines(&lines);
    let kept = shown.len() as u64 - 1;
    assert!((5..=10).contains(&kept), "{shown:?}");
    assert_eq!(
        shown[0],
        format!("acme-site {} lines were left out", 30 - kept)
    );
    assert_eq!(lines.last(), Some(&last));
    assert!(lines.is_sorted_by(|one, next| one.id < next.id));
}

#[tokio::test]
async fn torn_last_line_of_a_killed_process_is_skipped() {
    let world = world_with_site(|_| {}).await;
    visit(&world, paths(1..3)).await;
    let before = existing(&world, None, LogStart::Tail(10)).await;
    let file = files(&world).remove(0);
    let mut torn = OpenOptions::new().append(true).open(file).unwrap();
    torn.write_all(b"{\"id\":99999999999999999,\"numb").unwrap();
    let world = world.reopen().await;
    assert_eq!(existing(&world, None, LogStart::Tail(10)).await, before);
    visit(&world, paths(3..5)).await;
    let lines = existing(&world, None, LogStart::Tail(10)).await;
    let wanted = [1, 2, 3, 4].map(|number| format!("acme-site /{number} 404"));
    assert_eq!(request_lines(&lines), wanted);
}

#[tokio::test]
async fn reader_without_new_lines_gets_none_and_continues_later() {
    let world = world_with_site(|_| {}).await;
    let mut follower = Follower::open(&world, LogStart::After(LogId(0))).await;
    assert!(remaining(follower.reader.as_mut()).await.is_empty());
    for number in 0..5 {
        visit(&world, paths(number..number + 1)).await;
        let lines = follower.lines(1).await;
        let wanted = [format!("acme-site /{number} 404")];
        assert_eq!(request_lines(&lines), wanted);
    }
}

#[tokio::test]
async fn requests_to_suspended_and_missing_workers_do_not_create_logs_of_missing_objects() {
    let world = world().await;
    get(&world, "http://acme-none.localhost:8090/").await;
    assert!(world.names("worker").is_empty());
    assert!(existing(&world, None, LogStart::Tail(10)).await.is_empty());
}

const LOGGING_WORKER: &str = r#"
export default { async fetch(request, env) {
    if (request.url.endsWith("/throw")) throw new TypeError("no " + env.TOKEN);
    console.debug("debug"); console.log("log", { a: 1 }, "two\nlines"); console.info("info");
    console.warn("warn %s", env.TOKEN); console.error("error");
    return new Response("ok");
} };"#;

async fn create_worker(world: &World, text: &str) {
    let request = ObjectRequest {
        config: script(text, &json!([])),
        ..request(ResourceType::Worker, "acme-api")
    };
    world.infra.create(&request).await.unwrap();
    let secrets = SetSecrets {
        resource: resource(ResourceType::Worker, "acme-api"),
        owner: OWNER.to_owned(),
        secrets: vec![("TOKEN".to_owned(), Secret::new("open sesame"))],
        deleted: Vec::new(),
    };
    world.infra.set_secrets(&secrets).await.unwrap();
}

/// Returns levels and texts of the console lines.
fn console_lines(lines: &[LogLine]) -> Vec<(LogLevel, &str)> {
    let console = |line: &'_ LogLine| match &line.content {
        LogContent::Console { level, .. } => Some(*level),
        LogContent::Request { .. } => None,
    };
    let texts = lines.iter().filter_map(|line| match &line.content {
        LogContent::Console { text, .. } => Some(text.as_str()),
        LogContent::Request { .. } => None,
    });
    lines.iter().filter_map(console).zip(texts).collect()
}

#[tokio::test]
async fn console_lines_of_a_worker_have_their_levels_and_hide_secrets() {
    let Some(world) = running(WorkerdOptions::default()).await else {
        return;
    };
    create_worker(&world, LOGGING_WORKER).await;
    let mut follower = Follower::open(&world, LogStart::Tail(10)).await;
    let answer = get(&world, "http://acme-api.localhost:8090/a").await;
    assert_eq!(body(answer).await, "ok");
    // The console and the requests are read from different pipes, so their order is not defined.
    let lines = follower.lines(6).await;
    let wanted = [
        (LogLevel::Debug, "debug"),
        (LogLevel::Log, "log { a: 1 } two\nlines"),
        (LogLevel::Info, "info"),
        (LogLevel::Warn, "warn ***"),
        (LogLevel::Error, "error"),
    ];
    assert_eq!(console_lines(&lines), wanted);
    let requests: Vec<_> = request_lines(&lines);
    assert!(
        requests.contains(&"acme-api /a 200".to_owned()),
        "{requests:?}"
    );

    let answer = get(&world, "http://acme-api.localhost:8090/throw").await;
    assert_eq!(answer.status(), 500);
    let lines = follower.lines(2).await;
    let console = console_lines(&lines);
    let [(LogLevel::Error, text)] = console[..] else {
        panic!("{console:?}");
    };
    let stack = "Uncaught (in promise) TypeError: no ***\n    at Object.fetch (index.js:3:";
    assert!(text.starts_with(stack), "{text}");
    world.infra.stop_workers().await;
}

#[tokio::test]
async fn reason_why_a_worker_cannot_start_is_logged_without_paths() {
    let Some(world) = running(WorkerdOptions::default()).await else {
        return;
    };
    create_worker(&world, "export default { fetch( {").await;
    let mut follower = Follower::open(&world, LogStart::Tail(10)).await;
    let answer = get(&world, "http://acme-api.localhost:8090/").await;
    assert_eq!(answer.status(), 502);
    let lines = follower.lines(2).await;
    let console = console_lines(&lines);
    let [(LogLevel::Error, text)] = console[..] else {
        panic!("{console:?}");
    };
    assert!(text.starts_with("Uncaught SyntaxError: "), "{text}");
    let folder = world.folder.path().display().to_string();
    assert!(!text.contains(&folder), "{text}");
    world.infra.stop_workers().await;
}
