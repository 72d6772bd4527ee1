//! The limit on the number of connections.

use std::time::Duration;

use core_http::ServeOptions;
use tower::service_fn;

use crate::world::server::{Server, echo_length, get, options};

fn at_most(connections: usize) -> ServeOptions {
    ServeOptions {
        max_connections: connections,
        ..options()
    }
}

#[tokio::test]
async fn above_the_limit_the_longest_idle_connection_is_closed() {
    let server = Server::start(service_fn(echo_length), at_most(2)).await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = server.connect().await;
        assert_eq!(client.ask("/").await, "200 fine");
        clients.push(client);
        // Two connections that are idle since the same millisecond have no defined order.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut third = server.connect().await;
    assert_eq!(third.ask("/").await, "200 fine");
    let mut clients = clients.into_iter();
    let (first, mut second) = (clients.next().unwrap(), clients.next().unwrap());
    assert_eq!(first.read_to_close().await, "");
    assert_eq!(second.ask("/").await, "200 fine");
}

#[tokio::test]
async fn silent_clients_that_reach_the_limit_are_closed_and_others_are_served() {
    let server = Server::start(service_fn(echo_length), at_most(4)).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(server.connect().await);
    }
    server.assert_serves_others().await;
}

#[tokio::test]
async fn a_burst_of_clients_above_the_limit_does_not_affect_the_listener() {
    let server = Server::start(service_fn(echo_length), at_most(4)).await;
    let clients = (0..40).map(|_| async {
        for _ in 0..5 {
            let mut client = server.connect().await;
            client.write(&get("/")).await;
            let answer = client.answer().await;
            // Served, refused, or closed in favour of a later connection.
            let expected = ["200 fine", "503 ", "closed "];
            assert!(
                expected.iter().any(|one| answer.starts_with(one)),
                "{answer}"
            );
        }
    });
    futures_util::future::join_all(clients).await;
    server.assert_serves_others().await;
}
