//! The role of the measured server: a suite that listens on sockets.

use std::convert::Infallible;
use std::time::Duration;

use core_domain::gateway::RateKind;
use core_suite::{BoxError, IncomingBody, ServeOptions, Settings, SuiteBuilder};
use http::{Request, Response};
use serde_json::json;
use tokio::net::TcpListener;
use tower::Service;

use super::installation::{IAM, SERVICE_KEY};
use super::process::{print_message, wait_for_end};

/// Builds the suite, reports its addresses, and serves until it is asked to end.
pub(crate) async fn serve(builder: SuiteBuilder) {
    let builder = builder.iam_url(IAM).service_key(SERVICE_KEY);
    let suite = builder.settings(lift_rates).build().await.unwrap();
    let addresses = json!({
        "gateway": listen(suite.gateway()).await,
        "iam": listen(suite.iam()).await,
        "registry": listen(suite.registry()).await,
    });
    print_message("ready", &json!({ "addresses": addresses }));
    wait_for_end().await;
    suite.shutdown().await;
}

/// Lifts all rate limits, because all clients have the same address here.
fn lift_rates(settings: &mut Settings) {
    let minute = Duration::from_secs(60);
    for kind in RateKind::ALL {
        let rates = &mut settings.gateway.rates;
        rates.set(*kind, u32::MAX, minute).unwrap();
    }
}

async fn listen<S, B>(service: S) -> String
where
    S: Service<Request<IncomingBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let options = ServeOptions::default();
    tokio::spawn(core_suite::serve(
        listener,
        service,
        std::future::pending(),
        options,
    ));
    format!("http://{address}")
}
