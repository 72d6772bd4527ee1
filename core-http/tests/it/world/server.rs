//! A server on a socket of its own, and raw connections to it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use core_http::kernel::{Body, bytes_body, read_body};
use core_http::{IncomingBody, ServeOptions, serve};
use http::{Request, Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The timeout of reads. It is far longer than any step takes, so a test that reaches it fails.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) running: JoinHandle<std::io::Result<()>>,
}

impl Server {
    pub(crate) async fn start<S>(service: S, options: ServeOptions) -> Self
    where
        S: tower::Service<Request<IncomingBody>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move {
            let _ = stopped.await;
        };
        let running = tokio::spawn(serve(listener, service, shutdown, options));
        Self {
            address,
            stop,
            running,
        }
    }

    pub(crate) async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    /// Connects from another address of the loopback network, such as `127.0.0.2`.
    pub(crate) async fn connect_from(&self, address: &str) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        let local = SocketAddr::new(address.parse().unwrap(), 0);
        socket.bind(local).unwrap();
        Client(socket.connect(self.address).await.unwrap())
    }

    /// Sends bytes on a new connection, and returns everything read until the server closes it.
    pub(crate) async fn send_raw(&self, bytes: &str) -> String {
        let mut client = self.connect().await;
        client.write(bytes).await;
        client.read_to_close().await
    }

    /// Asserts that the server answers another client on a new connection.
    pub(crate) async fn assert_serves_others(&self) {
        let mut client = self.connect().await;
        assert_eq!(client.ask("/").await, "200 fine");
    }
}

/// Responds with the length of the body, or with `fine` if it is empty. Responds with 400 if the body cannot be read.
pub(crate) async fn echo_length(
    request: Request<IncomingBody>,
) -> Result<Response<Body>, Infallible> {
    let read = read_body(Body::new(request.into_body()), usize::MAX).await;
    let mut response = match read {
        Ok(body) if body.is_empty() => Response::new(bytes_body("fine")),
        Ok(body) => Response::new(bytes_body(body.len().to_string())),
        Err(error) => {
            let mut response = Response::new(bytes_body(error.to_string()));
            *response.status_mut() = StatusCode::BAD_REQUEST;
            response
        }
    };
    response
        .headers_mut()
        .insert("x-test", http::HeaderValue::from_static("1"));
    Ok(response)
}

pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    pub(crate) async fn write(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Sends a `GET` request and returns the status and body of the response.
    pub(crate) async fn ask(&mut self, path: &str) -> String {
        self.write(&get(path)).await;
        self.answer().await
    }

    /// Reads a response with a `Content-Length`. Returns its status and body.
    pub(crate) async fn answer(&mut self) -> String {
        let mut text = String::new();
        loop {
            let mut bytes = [0_u8; 4_096];
            let read = tokio::time::timeout(READ_TIMEOUT, self.0.read(&mut bytes));
            let length = read.await.unwrap().unwrap_or(0);
            if length == 0 {
                return format!("closed after {text:?}");
            }
            text.push_str(std::str::from_utf8(&bytes[..length]).unwrap());
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let expected = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map(|length| length.parse::<usize>().unwrap());
            if expected.is_some_and(|expected| body.len() >= expected) {
                let status = head.split(' ').nth(1).unwrap();
                return format!("{status} {body}");
            }
        }
    }

    /// Reads up to and including this text.
    pub(crate) async fn read_until(&mut self, text: &str) {
        let mut read = Vec::new();
        while !read.ends_with(text.as_bytes()) {
            let byte = tokio::time::timeout(READ_TIMEOUT, self.0.read_u8());
            read.push(byte.await.unwrap().unwrap());
        }
    }

    /// Reads until the server closes the connection. Returns everything read.
    pub(crate) async fn read_to_close(mut self) -> String {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(READ_TIMEOUT, self.0.read_to_end(&mut bytes));
        // A connection reset counts as closed.
        let _ = read.await.unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Returns the status of a raw response, or `closed` if it has none.
pub(crate) fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("closed")
}

pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// Returns options with timeouts that no test reaches unless it lowers them.
pub(crate) fn options() -> ServeOptions {
    ServeOptions {
        header_timeout: READ_TIMEOUT * 2,
        keep_alive_timeout: READ_TIMEOUT * 2,
        write_idle_timeout: READ_TIMEOUT * 2,
        ..ServeOptions::default()
    }
}
