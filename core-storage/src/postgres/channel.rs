//! Listens to a channel of the database, and sends to it. Each direction has one connection, which is opened again when
//! it is lost.

use std::time::Duration;

use core_domain::kernel::StoreError;
use tokio::time::sleep;

use super::connection::Connection;
use super::options::Options;
use crate::sql::ddl::quote_ident;
use crate::sql::postgres::{CURRENT_SCHEMA, RunError, notice_channel};

/// The minimum time between two notifications. Those of a shorter time are sent together.
pub(super) const MIN_NOTIFY_INTERVAL: Duration = Duration::from_millis(20);
/// The pause before a lost connection is opened again.
pub(super) const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// A channel of the database.
#[derive(Clone, Debug)]
pub(super) enum Channel {
    /// The channel of this name.
    Named(&'static str),
    /// The channel for notices of the installation in this schema; `None` means the default schema of the connection.
    OfSchema(Option<String>),
}

impl Channel {
    /// Returns the name of the channel. Only the connection knows its default schema.
    async fn name(&self, connection: &mut Connection) -> Result<String, StoreError> {
        let schema = match self {
            Self::Named(name) => return Ok((*name).to_owned()),
            Self::OfSchema(Some(schema)) => schema.clone(),
            Self::OfSchema(None) => default_schema(connection).await?,
        };
        Ok(notice_channel(&schema))
    }
}

async fn default_schema(connection: &mut Connection) -> Result<String, StoreError> {
    let rows = connection.query_rows(CURRENT_SCHEMA, &[]).await;
    let rows = rows.map_err(RunError::into_failure)?;
    let schema = rows.first().and_then(|row| row.try_get(0).ok());
    schema.ok_or_else(|| StoreError::backend("the default schema of the connection is unknown"))
}

/// Receives the events of a channel.
pub(super) trait Listener: Send + Sync {
    /// Called after the connection was opened. Earlier notifications may have been missed.
    fn on_listening(&self);

    /// Called for each notification.
    fn on_notification(&self, payload: &str);
}

/// Listens to the channel until the future is dropped.
pub(super) async fn listen(options: Options, channel: Channel, listener: impl Listener) {
    loop {
        // The function returns only with an error.
        let _ = listen_once(&options, &channel, &listener).await;
        sleep(RECONNECT_DELAY).await;
    }
}

async fn listen_once(
    options: &Options,
    channel: &Channel,
    listener: &impl Listener,
) -> Result<(), StoreError> {
    let mut connection = Connection::open(options).await?;
    let name = channel.name(&mut connection).await?;
    let listen = format!("LISTEN {}", quote_ident(&name));
    connection.run(&listen).await?;
    listener.on_listening();
    loop {
        let payload = connection.next_notification().await;
        listener.on_notification(&payload.map_err(RunError::into_failure)?);
    }
}

/// Sends to a channel.
pub(super) struct Sender {
    options: Options,
    channel: Channel,
    /// The open connection, and the name of the channel.
    open: Option<(Connection, String)>,
}

impl Sender {
    pub(super) fn new(options: Options, channel: Channel) -> Self {
        // A notification that is lost when the server crashes does not justify a wait for its disk.
        let options = options.with("synchronous_commit", "off");
        Self {
            options,
            channel,
            open: None,
        }
    }

    /// Runs the statements that `statements` returns for the name of the channel. Opens a connection if none is open,
    /// and closes it after a failure.
    pub(super) async fn send(
        &mut self,
        statements: impl FnOnce(&str) -> String,
    ) -> Result<(), StoreError> {
        let (mut connection, name) = match self.open.take() {
            Some(open) => open,
            None => {
                let mut connection = Connection::open(&self.options).await?;
                let name = self.channel.name(&mut connection).await?;
                (connection, name)
            }
        };
        connection.run(&statements(&name)).await?;
        self.open = Some((connection, name));
        Ok(())
    }
}
