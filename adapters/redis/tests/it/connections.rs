//! Connections: lost and opened again, with TLS, and without secrets in logs.

use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use core_domain::port::RateLimiter;
use core_redis::testing::RedisServer;
use core_redis::{CheckError, Redis, RedisConfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;
use tracing_subscriber::fmt::MakeWriter;

use crate::world::{TIMEOUT, config, connect, key, now, policy, server};

/// Counts a request when there is a connection, and again if the connection was about to be lost.
async fn count_when_connected(redis: &Redis) {
    let (limiter, policy) = (redis.rate_limiter(), policy("default", 1_000, 60));
    let counted = tokio::time::timeout(TIMEOUT, async {
        loop {
            assert!(redis.wait_until_connected(TIMEOUT).await);
            let counted = limiter.count_request(key(&policy, "ada"), &policy, now());
            if counted.await.is_ok() {
                return;
            }
            tokio::task::yield_now().await;
        }
    });
    counted.await.expect("the limiter works again");
}

#[tokio::test]
async fn the_limiter_fails_at_once_without_a_server_and_works_again_with_it() {
    let server = server().await;
    let redis = connect(server.url()).await;
    count_when_connected(&redis).await;
    let (limiter, policy) = (redis.rate_limiter(), policy("default", 100, 60));
    for _ in 0..2 {
        server.stop().await.unwrap();
        for _ in 0..3 {
            let failed = limiter
                .count_request(key(&policy, "ada"), &policy, now())
                .await;
            let error = failed.expect_err("there is no server");
            assert_eq!(error.to_string(), "the rate limiter cannot be reached");
        }
        assert!(limiter.forget_attempts(key(&policy, "ada")).await.is_err());
        server.start_again().await.unwrap();
        count_when_connected(&redis).await;
    }
}

#[tokio::test]
async fn a_start_without_a_server_succeeds_and_connects_later() {
    let server = server().await;
    server.stop().await.unwrap();
    let redis = Redis::open(config(server.url())).unwrap();
    assert!(!redis.wait_until_connected(Duration::ZERO).await);
    server.start_again().await.unwrap();
    count_when_connected(&redis).await;
}

#[tokio::test]
async fn a_server_that_does_not_respond_is_not_waited_for() {
    let server = server().await;
    let redis = Redis::open(RedisConfig {
        response_timeout: Duration::from_millis(20),
        ..config(server.url())
    });
    let redis = redis.unwrap();
    assert!(redis.wait_until_connected(TIMEOUT).await);
    let client = redis::Client::open(server.url()).unwrap();
    let mut other = client.get_multiplexed_async_connection().await.unwrap();
    let mut pause = redis::cmd("CLIENT");
    pause.arg("PAUSE").arg(TIMEOUT.as_millis().to_string());
    pause.exec_async(&mut other).await.unwrap();
    let (limiter, policy) = (redis.rate_limiter(), policy("default", 100, 60));
    let failed = limiter
        .count_request(key(&policy, "ada"), &policy, now())
        .await;
    assert!(failed.is_err());
}

/// The files of a server's certificate, and of the root that it comes from.
struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut root = CertificateParams::default();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = CertifiedIssuer::self_signed(root, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let server = server.signed_by(&key, &root).unwrap();
        let files = [
            ("root.pem", root.pem()),
            ("server.pem", server.pem()),
            ("key.pem", key.serialize_pem()),
        ];
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

#[tokio::test]
async fn a_url_with_rediss_uses_tls_and_verifies_the_certificate() {
    let [ours, theirs] = [Certificates::new(), Certificates::new()];
    let [certificate, key, root] =
        ["server.pem", "key.pem", "root.pem"].map(|file| ours.path(file));
    let options = [
        ["--port", "0"],
        ["--tls-port", "{port}"],
        ["--tls-auth-clients", "no"],
        ["--tls-cert-file", &certificate],
        ["--tls-key-file", &key],
        ["--tls-ca-cert-file", &root],
    ];
    let server = RedisServer::start(options.as_flattened()).await.unwrap();
    let open = |certificates: &Certificates| {
        let mut config = config(server.url().replace("redis://", "rediss://"));
        config.options.root_certificates = Some(certificates.path("root.pem").into());
        Redis::open(config).unwrap()
    };
    count_when_connected(&open(&ours)).await;
    // A client with the right certificate has connected by then.
    let stranger = open(&theirs);
    count_when_connected(&open(&ours)).await;
    assert!(!stranger.wait_until_connected(Duration::ZERO).await);
}

#[tokio::test]
async fn a_check_finds_a_wrong_a_missing_and_an_unexpected_password_without_printing_it() {
    let server = RedisServer::start(&["--requirepass", "hidden"]).await;
    let server = server.unwrap();
    let url = |login: &str| format!("redis://{login}127.0.0.1:{}", server.port());
    Redis::check(&config(url(":hidden@"))).await.unwrap();
    let open = self::server().await;
    let unexpected = open.url().replace("redis://", "redis://:hidden-sesame@");
    for url in [
        url(":hidden-sesame@"),
        url("ada:hidden-sesame@"),
        url(""),
        unexpected,
    ] {
        let error = Redis::check(&config(&url)).await.unwrap_err();
        assert!(matches!(error, CheckError::Login(_)), "{url}: {error:?}");
        let text = format!("{error} {error:?}");
        assert!(!text.contains("sesame"), "{text}");
        assert!(error.advice().contains("password"), "{error}");
    }
    Redis::check(&config(open.url())).await.unwrap();
    let unknown = Redis::check(&config(format!("{}/99", open.url()))).await;
    assert!(
        matches!(unknown, Err(CheckError::Refused(_))),
        "{unknown:?}"
    );
    open.stop().await.unwrap();
    let missing = Redis::check(&config(open.url())).await;
    assert!(
        matches!(missing, Err(CheckError::Unreachable(_))),
        "{missing:?}"
    );
}

#[tokio::test]
async fn a_check_of_a_server_that_does_not_respond_ends_in_time() {
    // The system accepts connections to it.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = config(format!("redis://{}", silent.local_addr().unwrap()));
    config.connect_timeout = Duration::from_millis(50);
    assert_eq!(Redis::check(&config).await, Err(CheckError::TimedOut));
}

#[test]
fn an_invalid_option_is_refused_without_its_value() {
    let refused = |change: &dyn Fn(&mut RedisConfig)| {
        let mut config = RedisConfig::new("redis://:hidden@127.0.0.1:1");
        change(&mut config);
        let error = Redis::open(config).unwrap_err();
        assert!(
            !format!("{error:?} {error}").contains("hidden"),
            "{error:?}"
        );
        error.setting
    };
    for url in [
        "",
        "hidden",
        "http://:hidden@host",
        "redis://:hidden@host:port",
        "redis://:hidden@host/base",
        "rediss://:hidden@host#insecure",
    ] {
        let change = |config: &mut RedisConfig| config.url = RedisConfig::new(url).url;
        assert_eq!(refused(&change), "redis.url", "{url}");
    }
    for prefix in ["", "a b", "é", &"x".repeat(65)] {
        let change = |config: &mut RedisConfig| config.options.key_prefix = prefix.to_owned();
        assert_eq!(refused(&change), "redis.key_prefix", "{prefix}");
    }
    let change = |config: &mut RedisConfig| {
        config.url = RedisConfig::new("rediss://:hidden@127.0.0.1:1").url;
        config.options.root_certificates = Some("missing.pem".into());
    };
    assert_eq!(refused(&change), "redis.root_certificates");
}

/// While a process has only one subscriber, tracing asks the subscriber of the thread that reaches a log statement
/// first. In another test this thread has none, and the statement would stay off. With a second subscriber, all of them
/// are asked.
static SECOND_SUBSCRIBER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn changes_of_the_state_are_logged_once_and_no_secret_is_shown() {
    LazyLock::force(&SECOND_SUBSCRIBER);
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let server = RedisServer::start(&["--requirepass", "hidden"])
        .await
        .unwrap();
    let url = |password: &str| format!("redis://:{password}@127.0.0.1:{}", server.port());
    let redis = connect(url("hidden")).await;
    count_when_connected(&redis).await;
    let (limiter, policy) = (redis.rate_limiter(), policy("default", 100, 60));
    let mut shown = format!("{redis:?} {limiter:?} {:?}", config(url("hidden")));
    server.stop().await.unwrap();
    for _ in 0..20 {
        let failed = limiter
            .count_request(key(&policy, "ada"), &policy, now())
            .await;
        shown.push_str(&format!("{:?}", failed.unwrap_err()));
        tokio::task::yield_now().await;
    }
    server.start_again().await.unwrap();
    count_when_connected(&redis).await;
    for (line, times) in [
        ("connected to Redis", 2),
        ("connection to Redis was lost", 1),
    ] {
        assert_eq!(
            log.text().matches(line).count(),
            times,
            "{line}: {}",
            log.text()
        );
    }

    // A server with another password, and one that speaks another language than the client.
    for url in [
        url("hidden-too"),
        format!("{}?protocol=resp3", url("hidden-too")),
    ] {
        let refused = Redis::open(config(url)).unwrap();
        let before = log.text().matches("Redis cannot be reached").count();
        let reported = tokio::time::timeout(TIMEOUT, async {
            while log.text().matches("Redis cannot be reached").count() == before {
                tokio::task::yield_now().await;
            }
        });
        reported.await.expect("the refusal is logged");
        shown.push_str(&format!("{refused:?}"));
    }
    shown.push_str(&log.text());
    assert!(!shown.contains("hidden"), "{shown}");
}
