//! A proxy that can stop forwarding bytes, like a lost host: no connection is closed or refused. It can also delay what
//! clients send, like a slow network.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Forwards bytes between clients and a database server until [`Proxy::swallow`] is called. Dropping it stops it.
#[derive(Debug)]
pub struct Proxy {
    /// The address on which the proxy listens.
    pub address: SocketAddr,
    swallows: watch::Sender<bool>,
    /// The number of first connections that are held. Later connections are not affected.
    held_connections: watch::Sender<usize>,
    accepted: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy for the server of this database URL, on a free port of the loopback address.
    ///
    /// # Panics
    /// If the URL names no host, or no port is free.
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
        let (held, holding) = watch::channel(0);
        let accepted = Arc::new(AtomicUsize::new(0));
        let ways = Forwarding {
            server,
            swallowing,
            holding,
        };
        let task = tokio::spawn(accept(listener, ways, accepted.clone()));
        Self {
            address,
            swallows,
            held_connections: held,
            accepted,
            task,
        }
    }

    /// Stops forwarding in both directions, on existing and new connections. The connections stay open.
    pub fn swallow(&self) {
        self.swallows.send_replace(true);
    }

    /// Forwards again, but not on the connections that were swallowed.
    pub fn forward_again(&self) {
        self.swallows.send_replace(false);
    }

    /// Delays what clients send on the existing connections, until [`Proxy::release`].
    pub fn hold(&self) {
        self.held_connections
            .send_replace(self.accepted_connections());
    }

    /// Forwards the delayed bytes.
    pub fn release(&self) {
        self.held_connections.send_replace(0);
    }

    /// Returns the number of connections that the proxy has accepted.
    #[must_use]
    pub fn accepted_connections(&self) -> usize {
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
        panic!("the URL of the server is invalid");
    };
    let Some(Host::Tcp(host)) = config.get_hosts().first() else {
        panic!("the URL of the server names no host");
    };
    (
        host.clone(),
        config.get_ports().first().copied().unwrap_or(5432),
    )
}

/// The server, and the signals that stop or delay forwarding.
#[derive(Clone)]
struct Forwarding {
    server: (String, u16),
    swallowing: watch::Receiver<bool>,
    holding: watch::Receiver<usize>,
}

async fn accept(listener: TcpListener, ways: Forwarding, accepted: Arc<AtomicUsize>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let number = accepted.fetch_add(1, Ordering::SeqCst);
        connections.spawn(forward(client, number, ways.clone()));
    }
}

async fn forward(client: TcpStream, number: usize, ways: Forwarding) {
    let Ok(server) = TcpStream::connect(ways.server).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let to_server = Direction {
        swallowing: ways.swallowing.clone(),
        held: Some((number, ways.holding)),
        to: to_server,
    };
    let to_client = Direction {
        swallowing: ways.swallowing,
        held: None,
        to: to_client,
    };
    tokio::join!(to_server.pump(from_client), to_client.pump(from_server));
}

/// One direction of a connection.
struct Direction {
    to: OwnedWriteHalf,
    swallowing: watch::Receiver<bool>,
    /// The number of the connection, and the number of first connections that are held.
    held: Option<(usize, watch::Receiver<usize>)>,
}

impl Direction {
    /// Forwards bytes. Returns once the direction is closed, but never while bytes are swallowed.
    async fn pump(mut self, mut from: OwnedReadHalf) {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = tokio::select! {
                biased;
                () = until_swallowed(&mut self.swallowing) => std::future::pending().await,
                read = from.read(&mut buffer) => read,
            };
            if let Some((number, held)) = &mut self.held {
                let _ = held.wait_for(|held| *number >= *held).await;
            }
            match read {
                Ok(count @ 1..) if self.to.write_all(&buffer[..count]).await.is_ok() => {}
                _ => break,
            }
        }
        let _ = self.to.shutdown().await;
    }
}

/// Waits until bytes are swallowed or the proxy has ended.
async fn until_swallowed(swallowing: &mut watch::Receiver<bool>) {
    let _ = swallowing.wait_for(|swallows| *swallows).await;
}
