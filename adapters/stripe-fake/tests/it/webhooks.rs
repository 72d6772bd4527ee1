//! Tests of events and webhooks.

use bytes::Bytes;
use core_stripe_fake::Settings;
use http::Response;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::world::World;

/// A received webhook: its body and its signature.
type Webhook = (Bytes, String);

/// Starts a receiver of webhooks. Returns its URL.
async fn receiver() -> (String, UnboundedReceiver<Webhook>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, receiver) = unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let sender = sender.clone();
            let service = service_fn(move |request| receive(request, sender.clone()));
            let server = hyper::server::conn::http1::Builder::new();
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
        }
    });
    (url, receiver)
}

async fn receive(
    request: http::Request<Incoming>,
    sender: UnboundedSender<Webhook>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let signature = request.headers()["stripe-signature"]
        .to_str()
        .unwrap()
        .to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    sender.send((body, signature)).unwrap();
    Ok(Response::new(Full::default()))
}

#[tokio::test]
async fn registered_endpoints_receive_signed_events() {
    let world = World::start().await;
    let (url, mut received) = receiver().await;
    let form = format!("url={url}&enabled_events[]=customer.created");
    let endpoint = world.post("/v1/webhook_endpoints", &form).await.object();
    assert_eq!(endpoint["secret"], *world.fake.webhook_secret());
    let customer = world.customer().await;
    world
        .post(&format!("/v1/customers/{customer}"), "name=Bob")
        .await
        .object();
    let (body, signature) = received.recv().await.unwrap();
    let event: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (&event["type"], &event["livemode"]),
        (&"customer.created".into(), &false.into())
    );
    assert_eq!(event["data"]["object"]["id"], *customer);
    assert_eq!(signature, world.fake.sign(&body, world.fake.now()));
    world.fake.advance(std::time::Duration::from_secs(5));
    world.fake.redeliver().await;
    let (again, signature) = received.recv().await.unwrap();
    assert_eq!(again, body);
    assert_eq!(signature, world.fake.sign(&body, world.fake.now()));
    assert!(received.try_recv().is_err());
}

#[tokio::test]
async fn an_event_shows_the_object_as_it_was() {
    let settings = Settings {
        secret_key: "rk_live_fake".to_owned(),
        event_version: "2027-01-01.foxglove".to_owned(),
        ..Settings::default()
    };
    let world = World::start_with(settings).await;
    let customer = world.customer().await;
    let id = world.open_invoice(&customer, 2900).await;
    world.of_invoice(&id, "void", "").await.object();
    let events = world.fake.events();
    let events: Vec<Value> = events
        .iter()
        .map(|event| serde_json::from_slice(&event.body).unwrap())
        .collect();
    let of = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap();
    assert_eq!(of("invoice.created")["data"]["object"]["status"], "draft");
    assert_eq!(of("invoice.finalized")["data"]["object"]["status"], "open");
    let voided = of("invoice.voided");
    assert_eq!(voided["data"]["object"]["status"], "void");
    assert_eq!(
        (&voided["livemode"], &voided["api_version"]),
        (&true.into(), &"2027-01-01.foxglove".into())
    );
}

#[tokio::test]
async fn a_test_makes_up_events() {
    let world = World::start().await;
    world.fake.emit(
        "charge.dispute.created",
        json!({"id": "dp_1", "object": "dispute"}),
    );
    let events = world
        .get("/v1/events?type=charge.dispute.created")
        .await
        .object();
    assert_eq!(events["data"][0]["data"]["object"]["id"], "dp_1");
}

#[tokio::test]
async fn webhooks_leave_this_machine_never() {
    let world = World::start().await;
    let form = "url=https://example.com/hook&enabled_events[]=*";
    let refused = world.post("/v1/webhook_endpoints", form).await;
    assert_eq!(refused.failure().0, 400);
}
