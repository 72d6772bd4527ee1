//! The HTTP server on the loopback interface.

use std::io;
use std::net::{IpAddr, SocketAddr};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use crate::response::Body;

/// A running server. Dropping it stops the server and closes all connections.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    task: AbortHandle,
}

/// Opens a port of the loopback interface; 0 selects a free port.
///
/// # Errors
/// [`io::Error`] if the port is not available.
pub async fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((IpAddr::from([127, 0, 0, 1]), port)).await
}

impl Server {
    /// Starts to answer the requests of a listener. An error closes the connection.
    ///
    /// # Errors
    /// [`io::Error`] if the listener has no address.
    pub fn start<A, F>(listener: TcpListener, answer: A) -> io::Result<Self>
    where
        A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = io::Result<Response<Body>>> + Send + 'static,
    {
        let address = listener.local_addr()?;
        let task = tokio::spawn(serve(listener, answer)).abort_handle();
        Ok(Self { address, task })
    }

    /// Returns the address, with the port.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the base URL, without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts connections until the future is dropped, which also closes them.
async fn serve<A, F>(listener: TcpListener, answer: A)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = io::Result<Response<Body>>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            connections.spawn(serve_connection(stream, answer.clone()));
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn serve_connection<A, F>(stream: TcpStream, answer: A)
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = io::Result<Response<Body>>> + Send + 'static,
{
    let server = hyper::server::conn::http1::Builder::new();
    let connection = server.serve_connection(TokioIo::new(stream), service_fn(answer));
    // An error means that the client disconnected, or that a fault closes the connection.
    let _ = connection.with_upgrades().await;
}
