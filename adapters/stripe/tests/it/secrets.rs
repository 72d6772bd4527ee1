//! Tests that secrets appear in no log, error or debug output.

use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex};

use core_domain::port::{CollectOutcome, Payments};
use core_stripe_fake::{Fault, Settings};
use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;
use tracing_subscriber::fmt::MakeWriter;

use crate::world::{CUSTOMERS, World, account, details, key};

/// While a process has only one subscriber, tracing asks the subscriber of the thread that reaches a log statement first. In
/// another test this thread has none, and the statement would stay off. With a second subscriber, all of them are asked.
static SECOND_SUBSCRIBER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

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

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_secret_appears_in_logs_errors_or_debug_output() {
    LazyLock::force(&SECOND_SUBSCRIBER);
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let settings = Settings {
        secret_key: "sk_test_hidden".to_owned(),
        webhook_secret: "whsec_hidden".to_owned(),
        ..Settings::default()
    };
    let world = World::with(settings, |_| ()).await;
    let customer = world.customer().await;
    let intent = world
        .stripe
        .create_setup_intent(&key("setup"), &customer)
        .await;
    let method = world
        .attach("pm_card_authenticationRequired", &customer)
        .await;
    let invoice = world.push(&customer).await;
    let outcome = world.collect(&invoice, &method, "pay:1").await.unwrap();
    let mut shown = format!(
        "{intent:?} {outcome:?} {:?} {:?}",
        world.stripe,
        account(&world.fake)
    );
    for fault in [
        Fault::Status {
            status: 401,
            retry_after: None,
            should_retry: None,
        },
        Fault::HtmlBody,
    ] {
        world.inject("GET", CUSTOMERS, fault.clone());
        world.inject("GET", CUSTOMERS, fault.clone());
        world.inject("GET", CUSTOMERS, fault);
        let error = world.stripe.ensure_customer(&key("x"), &details()).await;
        shown.push_str(&format!("{error:?}"));
        world.fake.clear_faults();
    }
    shown.push_str(std::str::from_utf8(&log.0.lock().unwrap()).unwrap());
    assert!(shown.contains("received a response"), "{shown}");
    let CollectOutcome::ActionRequired { client_secret } = outcome else {
        panic!("{outcome:?}");
    };
    let own = intent.unwrap().client_secret;
    for secret in [
        "hidden",
        client_secret.expose(),
        own.expose(),
        "ada@example.com",
    ] {
        assert!(!shown.contains(secret), "{secret}");
    }
}
