//! A proxy that can stop forwarding, as a host does that is lost: nothing is closed, nothing is refused.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Forwards bytes between clients and a database server until it swallows them. Dropping it ends it.
#[derive(Debug)]
pub struct Proxy {
    /// The address on which the proxy listens.
    pub address: SocketAddr,
    swallows: watch::Sender<bool>,
    accepted: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts one before the server of this database address, on a free port of the loopback address.
    ///
    /// # Panics
    /// When the server's address names no host, or no port is free.
    pub async fn start(url: &str) -> Self {
        let server = server_of(url);
        let listener = match TcpListener::bind("127.0.0.1:0").await {
            Ok(listener) => listener,
            Err(error) => panic!("no port is free: {error}"),
        };
        let address = match listener.local_addr() {
            Ok(address) => address,
            Err(error) => panic!("the proxy has no address: {error}"),
        };
        let (swallows, swallowing) = watch::channel(false);
        let accepted = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(accept(listener, server, swallowing, accepted.clone()));
        Self {
            address,
            swallows,
            accepted,
            task,
        }
    }

    /// Stops forwarding in both directions, on old and new connections. They stay open.
    pub fn swallow(&self) {
        self.swallows.send_replace(true);
    }

    /// Returns the number of connections that were made to it.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn server_of(url: &str) -> (String, u16) {
    let config: Result<Config, _> = url.parse();
    let Ok(config) = config else {
        panic!("the address of the server is not valid");
    };
    let Some(Host::Tcp(host)) = config.get_hosts().first() else {
        panic!("the address of the server names no host");
    };
    (
        host.clone(),
        config.get_ports().first().copied().unwrap_or(5432),
    )
}

async fn accept(
    listener: TcpListener,
    server: (String, u16),
    swallowing: watch::Receiver<bool>,
    accepted: Arc<AtomicUsize>,
) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        accepted.fetch_add(1, Ordering::SeqCst);
        connections.spawn(forward(client, server.clone(), swallowing.clone()));
    }
}

async fn forward(client: TcpStream, server: (String, u16), swallowing: watch::Receiver<bool>) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::join!(
        pump(from_client, to_server, swallowing.clone()),
        pump(from_server, to_client, swallowing),
    );
}

/// Forwards one direction. Returns once it is closed, and never while bytes are swallowed.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut swallowing: watch::Receiver<bool>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = tokio::select! {
            biased;
            () = until_swallowed(&mut swallowing) => std::future::pending().await,
            read = from.read(&mut buffer) => read,
        };
        match read {
            Ok(count @ 1..) if to.write_all(&buffer[..count]).await.is_ok() => {}
            _ => break,
        }
    }
    let _ = to.shutdown().await;
}

/// Returns once bytes are swallowed, or the proxy has ended.
async fn until_swallowed(swallowing: &mut watch::Receiver<bool>) {
    let _ = swallowing.wait_for(|swallows| *swallows).await;
}
