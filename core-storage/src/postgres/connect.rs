//! Opens a connection to one of the servers.

use std::time::Duration;

use core_domain::kernel::StoreError;
use tokio::time::timeout;
use tokio_postgres::{Client, Config, Socket};

use super::error::connect_failure;
use super::options::Options;
use super::servers::Server;
use super::tls::{Tls, TlsStream};

/// The part of a connection that reads and writes the socket.
pub(super) type Io = tokio_postgres::Connection<Socket, TlsStream>;

/// Opens a connection to the first server that accepts one. Each server gets an equal share of the time, so a server
/// that does not respond leaves time for the others.
///
/// # Errors
/// The error of the server that was tried last.
pub(super) async fn connect(options: &Options) -> Result<(Client, Io), StoreError> {
    let mut failure = StoreError::unavailable("the database URL names no server");
    for (at, server) in options.servers.in_order() {
        match within(options.server_timeout, open_one_of(server, options)).await {
            Ok(opened) => {
                options.servers.note_reached(at);
                return Ok(opened);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Opens a connection to the first address of a server that accepts one.
async fn open_one_of(server: &Server, options: &Options) -> Result<(Client, Io), StoreError> {
    let found = within(options.connect_timeout, async {
        let configs = server.configs(&options.config).await;
        configs.map_err(StoreError::unavailable)
    });
    let configs = found.await?;
    let count = u32::try_from(configs.len().max(1)).unwrap_or(u32::MAX);
    let limit = options.connect_timeout.min(options.server_timeout / count);
    let mut failure = StoreError::unavailable("the host name of a database server has no address");
    for config in configs {
        match within(limit, open(&config, options)).await {
            Ok(opened) => return Ok(opened),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn open(config: &Config, options: &Options) -> Result<(Client, Io), StoreError> {
    let opened = config.connect(Tls::clone(&options.tls)).await;
    opened.map_err(connect_failure)
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let ended = timeout(limit, work).await;
    ended.map_err(|_| StoreError::unavailable("connecting to a database server timed out"))?
}
