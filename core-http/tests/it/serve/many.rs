use std::sync::Arc;
use std::time::Duration;

use core_http::kernel::Body;
use core_http::{IncomingBody, ServeOptions};
use http::{Request, Response};
use tokio::sync::Semaphore;
use tower::service_fn;

use crate::world::server::{Server, get, lengths, options};

fn at_most(connections: usize) -> ServeOptions {
    ServeOptions {
        max_connections: connections,
        ..options()
    }
}

/// Requests to `/held` wait for `leave`, after they have told that they are in.
#[derive(Clone)]
struct Held {
    entered: Arc<Semaphore>,
    leave: Arc<Semaphore>,
}

impl Held {
    fn new() -> Self {
        Self {
            entered: Arc::new(Semaphore::new(0)),
            leave: Arc::new(Semaphore::new(0)),
        }
    }

    async fn answer(
        self,
        request: Request<IncomingBody>,
    ) -> Result<Response<Body>, std::convert::Infallible> {
        if request.uri().path() == "/held" {
            self.entered.add_permits(1);
            self.leave.acquire().await.unwrap().forget();
        }
        lengths(request).await
    }
}

#[tokio::test]
async fn above_the_cap_a_connection_waits_until_another_has_ended() {
    let held = Held::new();
    let service = held.clone();
    let service = service_fn(move |request| service.clone().answer(request));
    let server = Server::start(service, at_most(2)).await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    for client in [&mut first, &mut second] {
        client.write(&get("/held")).await;
        held.entered.acquire().await.unwrap().forget();
    }
    let mut third = server.connect().await;
    third.write(&get("/")).await;
    let waiting = tokio::time::timeout(Duration::from_millis(300), third.0.readable()).await;
    assert!(waiting.is_err(), "nobody may be served beyond the cap");
    drop(first);
    assert_eq!(third.answer().await, "200 fine");
    // Nobody who was served lost anything by it.
    held.leave.add_permits(1);
    assert_eq!(second.answer().await, "200 fine");
}

#[tokio::test]
async fn above_the_cap_the_longest_idle_connection_makes_room() {
    let server = Server::start(service_fn(lengths), at_most(2)).await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = server.connect().await;
        assert_eq!(client.ask("/").await, "200 fine");
        clients.push(client);
        // The order of two that are idle for the same millisecond is not told.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut third = server.connect().await;
    assert_eq!(third.ask("/").await, "200 fine");
    let mut clients = clients.into_iter();
    let (first, mut second) = (clients.next().unwrap(), clients.next().unwrap());
    assert_eq!(first.closed().await, "");
    assert_eq!(second.ask("/").await, "200 fine");
}

#[tokio::test]
async fn clients_that_send_nothing_and_fill_the_cap_are_closed_and_others_served() {
    let options = ServeOptions {
        header_timeout: Duration::from_millis(200),
        ..at_most(4)
    };
    let server = Server::start(service_fn(lengths), options).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(server.connect().await);
    }
    server.serves_others().await;
}

#[tokio::test]
async fn many_clients_through_a_small_cap_are_all_served() {
    let server = Server::start(service_fn(lengths), at_most(4)).await;
    let clients = (0..40).map(|_| async {
        for _ in 0..5 {
            server.serves_others().await;
        }
    });
    futures_util::future::join_all(clients).await;
}
