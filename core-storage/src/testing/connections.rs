//! The connections to the database of a test, as the Postgres server reports them.

use tokio_postgres::{Client, Error};

use super::{TestDatabase, connect};

/// A connection that counts the other connections to its database. Observers are not counted.
#[derive(Debug)]
pub struct Observer {
    client: Client,
}

impl TestDatabase {
    /// Opens an observer.
    ///
    /// # Panics
    /// If the server cannot be reached.
    pub async fn observe(&self) -> Observer {
        let client = connect(&self.url).await;
        let named = client.batch_execute("SET application_name = 'observer'");
        if let Err(error) = named.await {
            panic!("the observer has no name: {error}");
        }
        Observer { client }
    }

    /// Terminates the server processes of all connections, and waits until they have ended.
    ///
    /// # Panics
    /// If the server cannot be reached.
    pub async fn end_connections(&self) {
        let terminate = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()";
        if let Err(error) = connect(&self.url).await.execute(terminate, &[]).await {
            panic!("the connections cannot be ended: {error}");
        }
    }
}

impl Observer {
    /// Counts the connections to the database.
    ///
    /// # Panics
    /// If the server does not respond.
    pub async fn connections(&self) -> usize {
        self.count("").await
    }

    /// Counts the connections that wait for a lock.
    ///
    /// # Panics
    /// If the server does not respond.
    pub async fn connections_that_wait(&self) -> usize {
        self.count("AND wait_event_type = 'Lock'").await
    }

    /// Counts the connections that have an idle transaction.
    ///
    /// # Panics
    /// If the server does not respond.
    pub async fn connections_in_transaction(&self) -> usize {
        self.count("AND state = 'idle in transaction'").await
    }

    /// Executes statements without parameters.
    ///
    /// # Errors
    /// The server's error.
    pub async fn execute(&self, statements: &str) -> Result<(), Error> {
        self.client.batch_execute(statements).await
    }

    async fn count(&self, condition: &str) -> usize {
        let count = format!(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
             AND backend_type = 'client backend' AND application_name <> 'observer' {condition}"
        );
        let counted = self.client.query_one(&count, &[]).await;
        match counted.and_then(|row| row.try_get::<_, i64>(0)) {
            Ok(count) => usize::try_from(count).unwrap_or(0),
            Err(error) => panic!("the connections cannot be counted: {error}"),
        }
    }
}
