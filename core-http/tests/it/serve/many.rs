use std::time::Duration;

use core_http::ServeOptions;
use tower::service_fn;

use crate::world::server::{Server, get, lengths, options};

fn at_most(connections: usize) -> ServeOptions {
    ServeOptions {
        max_connections: connections,
        ..options()
    }
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
    let server = Server::start(service_fn(lengths), at_most(4)).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(server.connect().await);
    }
    server.serves_others().await;
}

#[tokio::test]
async fn a_burst_of_clients_above_the_cap_leaves_the_listener_as_it_was() {
    let server = Server::start(service_fn(lengths), at_most(4)).await;
    let clients = (0..40).map(|_| async {
        for _ in 0..5 {
            let mut client = server.connect().await;
            client.write(&get("/")).await;
            let answer = client.answer().await;
            // Served, refused, or closed for a later one.
            let expected = ["200 fine", "503 ", "closed "];
            assert!(
                expected.iter().any(|one| answer.starts_with(one)),
                "{answer}"
            );
        }
    });
    futures_util::future::join_all(clients).await;
    server.serves_others().await;
}
