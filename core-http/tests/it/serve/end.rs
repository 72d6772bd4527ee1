use std::sync::Arc;
use std::time::Duration;

use core_http::{IncomingBody, ServeOptions};
use http::Request;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tower::service_fn;

use crate::world::server::{Server, get, lengths, options};

#[tokio::test]
async fn requests_that_outlast_the_shutdown_are_cut_off() {
    let entered = Arc::new(Notify::new());
    let inside = Arc::clone(&entered);
    let service = service_fn(move |request: Request<IncomingBody>| {
        let inside = Arc::clone(&inside);
        async move {
            if request.uri().path() == "/for-ever" {
                inside.notify_one();
                std::future::pending::<()>().await;
            }
            lengths(request).await
        }
    });
    let options = ServeOptions {
        drain: Duration::from_millis(200),
        ..options()
    };
    let server = Server::start(service, options).await;
    let mut idle = server.connect().await;
    assert_eq!(idle.ask("/").await, "200 fine");
    let mut held = server.connect().await;
    held.write(&get("/for-ever")).await;
    entered.notified().await;
    server.stop.send(()).unwrap();
    assert_eq!(idle.closed().await, "");
    assert_eq!(held.closed().await, "");
    server.running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_shutdown_lets_running_requests_finish_and_takes_no_more() {
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (inside, may_leave) = (Arc::clone(&entered), Arc::clone(&leave));
    let service = service_fn(move |request: Request<IncomingBody>| {
        let (inside, may_leave) = (Arc::clone(&inside), Arc::clone(&may_leave));
        async move {
            inside.notify_one();
            may_leave.notified().await;
            lengths(request).await
        }
    });
    let server = Server::start(service, options()).await;
    let mut client = server.connect().await;
    client.write(&get("/")).await;
    entered.notified().await;
    server.stop.send(()).unwrap();
    while TcpStream::connect(server.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    leave.notify_one();
    assert!(client.closed().await.ends_with("fine"));
    server.running.await.unwrap().unwrap();
}
