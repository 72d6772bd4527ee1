//! Tests of response handling: rate limits, refusals, timeouts, and confidentiality of tokens and secrets.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use core_cloudflare::{CloudflareAccount, CloudflareOptions};
use core_cloudflare_fake::{Fault, Matcher, Pace, RateLimit, Settings, Silence};
use core_domain::kernel::Secret;
use core_domain::port::{Infrastructure, ProviderError, SetSecrets};
use core_domain::registry::ResourceType;
use tracing::instrument::WithSubscriber;

use crate::world::{OWNER, World, adapter, request, resource, site, upload};

fn status(status: u16, retry_after: Option<u64>) -> Fault {
    Fault::Status {
        status,
        retry_after,
    }
}

#[tokio::test]
async fn no_request_is_sent_during_the_pause_after_a_429() {
    let world = World::new().await;
    world.fake.inject(Matcher::any(), status(429, Some(120)));
    let clone = world.cloudflare.clone();
    for cloudflare in [&world.cloudflare, &clone, &world.cloudflare] {
        let outcome = cloudflare.observe(&resource(ResourceType::D1)).await;
        let Err(ProviderError::Throttled {
            retry_after_seconds,
        }) = outcome
        else {
            panic!("{outcome:?}");
        };
        assert!(
            (110..=120).contains(&retry_after_seconds),
            "{retry_after_seconds}"
        );
    }
    assert_eq!(world.fake.requests().len(), 1);
}

#[tokio::test]
async fn pause_after_a_429_is_at_most_one_hour() {
    let world = World::new().await;
    world.fake.inject(Matcher::any(), status(429, Some(86_400)));
    let outcome = world.cloudflare.create(&request(ResourceType::Kv)).await;
    let expected = ProviderError::Throttled {
        retry_after_seconds: 3_600,
    };
    assert_eq!(outcome, Err(expected));
}

#[tokio::test]
async fn rate_limit_of_the_account_is_never_exceeded() {
    let world = World::with(Settings::default(), |options| {
        options.requests = 40;
        options.longest_wait = Duration::ZERO;
    })
    .await;
    world.fake.set_rate_limit(RateLimit {
        requests: 40,
        window: Duration::from_mins(5),
    });
    let mut throttled = 0;
    for _ in 0..100 {
        match world.cloudflare.observe(&resource(ResourceType::R2)).await {
            Ok(_) => {}
            Err(ProviderError::Throttled { .. }) => throttled += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(throttled > 0);
    let requests = world.fake.requests();
    assert!(requests.iter().all(|request| request.status != Some(429)));
    assert!((10..=40).contains(&requests.len()), "{}", requests.len());
}

#[tokio::test]
async fn rejected_token_is_a_permanent_error_without_details() {
    for (status, code) in [(403, 10_000), (401, 10_000), (403, 9_109), (400, 6_003)] {
        let world = World::new().await;
        world
            .fake
            .inject(Matcher::any(), Fault::Refusal { status, code });
        let outcome = world.cloudflare.create(&request(ResourceType::D1)).await;
        let expected = "the operator must renew the API token or its permissions".to_owned();
        assert_eq!(outcome, Err(ProviderError::Permanent(expected)));
        assert_eq!(world.fake.requests().len(), 1);
    }
}

#[tokio::test]
async fn invalid_path_does_not_mean_that_the_object_is_missing() {
    let world = World::new().await;
    world.make(ResourceType::R2).await;
    let no_route = Fault::Refusal {
        status: 404,
        code: 7_003,
    };
    world.fake.inject(Matcher::any(), no_route);
    let outcome = world.cloudflare.observe(&resource(ResourceType::R2)).await;
    assert!(
        matches!(outcome, Err(ProviderError::Permanent(_))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn silent_server_times_out() {
    let hurried = |options: &mut CloudflareOptions| {
        options.request_timeout = Duration::from_secs(2);
        options.idle_timeout = Duration::from_secs(2);
    };
    for (fault, made) in [
        (Fault::TimeoutBeforeEffect(Silence::Hang), 0),
        (Fault::TimeoutAfterEffect(Silence::Hang), 1),
        (Fault::SlowBody(Pace::Stall), 1),
    ] {
        let world = World::new().await;
        // Only the response to the creation is missing. The search after it finds the object if it was created.
        world.fake.inject(world.matcher("POST", "queues"), fault);
        let hurried = adapter(&world.fake, hurried);
        let outcome = hurried.create(&request(ResourceType::Queue)).await;
        assert_eq!(outcome.is_ok(), made == 1, "{outcome:?}");
        assert_eq!(world.fake.count(core_cloudflare_fake::Kind::Queue), made);
        if let Err(error) = outcome {
            assert!(
                matches!(error, ProviderError::OutcomeUnknown(_)),
                "{error:?}"
            );
        }
    }
}

#[tokio::test]
async fn too_long_response_is_a_transient_error() {
    let world = World::with(Settings::default(), |options| options.answer_bytes = 64).await;
    let outcome = world.cloudflare.observe(&resource(ResourceType::D1)).await;
    assert!(
        matches!(outcome, Err(ProviderError::Transient(_))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn refused_connection_is_a_transient_error() {
    let world = World::new().await;
    let World {
        fake, cloudflare, ..
    } = world;
    drop(fake);
    tokio::task::yield_now().await;
    let outcome = cloudflare.observe(&resource(ResourceType::D1)).await;
    assert!(
        matches!(outcome, Err(ProviderError::Transient(_))),
        "{outcome:?}"
    );
}

/// The captured log of a test.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn logs_errors_and_debug_output_hide_tokens_and_secrets() {
    const SECRET: &str = "correct-horse-battery";
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // While a process has only one subscriber, tracing asks the subscriber of the thread that reaches a log statement first. In
    // another test this thread has none, and the statement would stay off. With a second subscriber, all of them are asked.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new());
    let mut texts = Vec::new();
    let world = World::new().await;
    let token = world.fake.token();
    let work = async {
        world.make(ResourceType::Worker).await;
        world.make(ResourceType::Pages).await;
        let secrets = SetSecrets {
            resource: resource(ResourceType::Worker),
            owner: OWNER.to_owned(),
            secrets: vec![("KEY".to_owned(), Secret::new(SECRET))],
            deleted: Vec::new(),
        };
        texts.push(format!("{secrets:?}{:?}", world.cloudflare));
        for fault in [
            Fault::HtmlBody,
            Fault::Refusal {
                status: 400,
                code: 10_021,
            },
            Fault::Refusal {
                status: 403,
                code: 10_000,
            },
            Fault::TimeoutAfterEffect(Silence::Close),
        ] {
            let path = "workers/scripts/*/secrets-bulk";
            world.fake.inject(world.matcher("PATCH", path), fault);
            let error = world.cloudflare.set_secrets(&secrets).await.unwrap_err();
            texts.push(format!("{error:?} {error}"));
        }
        let tokens = world.matcher("GET", "pages/projects/*/upload-token");
        for fault in [
            Fault::SlowBody(Pace::Drip(Duration::ZERO)),
            Fault::EmptyBody204,
        ] {
            world.fake.inject(tokens.clone(), fault);
            let upload = upload(site([("index.html", "a")]), "production", "key");
            let outcome = world.cloudflare.deploy_site(upload).await;
            texts.push(format!("{outcome:?}"));
        }
    };
    work.with_subscriber(subscriber).await;
    texts.push(String::from_utf8(log.0.lock().unwrap().clone()).unwrap());
    let all = texts.join("\n");
    // The log is not empty and contains the requests.
    assert!(
        all.contains("worker.set_secrets") && all.contains("cf_ray"),
        "{all}"
    );
    for hidden in [SECRET, token.as_str(), "Bearer", "eyJ"] {
        assert!(!all.contains(hidden), "{hidden} is shown");
    }
}

#[test]
fn account_check_names_the_invalid_setting_and_hides_the_token() {
    let good = || CloudflareAccount {
        token: Secret::new("t0ken"),
        account_id: "023e105f4ecef8ad9ca31a8372d0c353".to_owned(),
        base_url: core_cloudflare::API_BASE_URL.to_owned(),
    };
    good().check().unwrap();
    assert!(!format!("{:?}", good()).contains("t0ken"));
    let refused = |change: fn(&mut CloudflareAccount)| {
        let mut account = good();
        change(&mut account);
        account.check().unwrap_err().setting
    };
    assert_eq!(refused(|a| a.token = Secret::new("")), "cloudflare.token");
    assert_eq!(
        refused(|a| a.token = Secret::new("a b\n")),
        "cloudflare.token"
    );
    assert_eq!(
        refused(|a| a.account_id = "me".to_owned()),
        "cloudflare.account_id"
    );
    for base_url in [
        "",
        "api.cloudflare.com",
        "http://api.cloudflare.com",
        "https://user@api.cloudflare.com",
        "https://api.cloudflare.com/",
        "https://api.cloudflare.com/v4?x=1",
    ] {
        let account = CloudflareAccount {
            base_url: base_url.to_owned(),
            ..good()
        };
        assert_eq!(
            account.check().unwrap_err().setting,
            "cloudflare.base_url",
            "{base_url}"
        );
    }
}

#[test]
fn invalid_options_are_refused_by_name() {
    CloudflareOptions::default().check().unwrap();
    let refused = |change: fn(&mut CloudflareOptions)| {
        let mut options = CloudflareOptions::default();
        change(&mut options);
        options.check().unwrap_err().setting
    };
    assert_eq!(refused(|o| o.requests = 1), "cloudflare.requests");
    assert_eq!(refused(|o| o.uploads = 0), "cloudflare.uploads");
    assert_eq!(refused(|o| o.answer_bytes = 0), "cloudflare.answer_bytes");
    assert_eq!(refused(|o| o.window = Duration::ZERO), "cloudflare.window");
    assert_eq!(
        refused(|o| o.saas_zone = Some(String::new())),
        "cloudflare.saas_zone"
    );
    let long = |o: &mut CloudflareOptions| o.request_timeout = Duration::from_secs(61);
    assert_eq!(refused(long), "cloudflare.request_timeout");
    let date = |o: &mut CloudflareOptions| o.compatibility_date = "today".to_owned();
    assert_eq!(refused(date), "cloudflare.compatibility_date");
}
