//! Listens to a channel of the database, on a connection of its own.

use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};
use sqlx::{AssertSqlSafe, Executor, PgPool};
use tokio::time::{sleep, timeout};

/// The minimum time between two notifications. Those of a shorter time are sent together.
pub(crate) const MIN_NOTIFY_INTERVAL: Duration = Duration::from_millis(20);
/// The pause before a lost connection is opened again.
pub(crate) const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// The time without a notification after which the listener checks that the server responds.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum wait for the reply to that check.
const MAX_CHECK: Duration = Duration::from_secs(5);

/// Receives the events of a channel.
pub(crate) trait Listener: Send + Sync {
    /// Returns the name of the channel.
    fn channel(&self, pool: &PgPool) -> impl Future<Output = Result<String, sqlx::Error>> + Send;

    /// Called after the connection was opened. Earlier notifications may have been missed.
    fn on_listening(&self);

    /// Called for each notification.
    fn on_notification(&self, payload: &str);
}

/// Listens to the channel until the pool is closed.
pub(crate) async fn listen(pool: PgPool, listener: impl Listener) {
    while !pool.is_closed() {
        tokio::select! {
            // The function returns only with an error.
            _ = listen_once(&pool, &listener) => sleep(RECONNECT_DELAY).await,
            () = pool.close_event() => return,
        }
    }
}

async fn listen_once(pool: &PgPool, listener: &impl Listener) -> Result<(), sqlx::Error> {
    let channel = listener.channel(pool).await?;
    // The host program may have changed the options since the last connection, for example the password.
    let options = pool.connect_options().as_ref().clone();
    let own = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .connect_lazy_with(options);
    let mut connection = PgListener::connect_with(&own).await?;
    connection.listen(&channel).await?;
    listener.on_listening();
    loop {
        match timeout(CHECK_INTERVAL, connection.try_recv()).await {
            Ok(Ok(Some(notification))) => listener.on_notification(notification.payload()),
            // The driver has opened the connection again.
            Ok(Ok(None)) => listener.on_listening(),
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                let check = timeout(MAX_CHECK, connection.execute("SELECT 1")).await;
                check.map_err(|_| sqlx::Error::PoolTimedOut)??;
            }
        }
    }
}

/// Runs statements that notify, on a connection of the pool. A notification that is lost when the server crashes does
/// not justify a wait for its disk.
pub(crate) async fn notify(pool: &PgPool, statements: &str) -> Result<(), sqlx::Error> {
    let text = format!("BEGIN; SET LOCAL synchronous_commit = off; {statements}; COMMIT");
    let run = sqlx::raw_sql(AssertSqlSafe(text)).execute(pool);
    run.await.map(drop)
}
