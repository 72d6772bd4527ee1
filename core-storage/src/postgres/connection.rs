//! A connection that its user drives: no separate task runs between a statement and the socket.
//!
//! Statements that do not depend on each other's results are sent together and answered in order.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use core_domain::kernel::StoreError;
use futures_util::TryStreamExt;
use futures_util::future::join;
use tokio::task::unconstrained;
use tokio::time::timeout;
use tokio_postgres::error::Severity;
use tokio_postgres::{AsyncMessage, Client, RowStream, SimpleQueryMessage};

use super::connect::{Io, connect};
use super::options::Options;
use super::position::Position;
use super::tls::Tls;
use super::values::{Parameter, ResultRow, type_of};
use crate::sql::Statement;
use crate::sql::postgres::{RunError, UuidTexts};
use crate::value::Visit;

/// The maximum number of prepared statements. It exceeds the number of different statements in the program. A
/// connection that reaches it clears its statements.
const MAX_PREPARED: usize = 1_024;

/// How long an abandoned statement may run before it is cancelled. Most statements end sooner than a cancel request
/// arrives.
const CANCEL_DELAY: Duration = Duration::from_millis(20);
/// How long a cancelled statement may run before it is cancelled again. A server ignores a cancel request if the
/// statement has not started yet.
const CANCEL_PAUSE: Duration = Duration::from_millis(200);
/// The time without a notification after which a listener checks that the server responds.
const NOTIFICATION_CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum time to end the abandoned work of a connection.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to the server.
pub(super) struct Connection {
    client: Client,
    io: Io,
    prepared: PreparedStatements,
    tls: Tls,
    /// Maximum wait for a reply; `None` means no limit.
    answer_timeout: Option<Duration>,
    /// The payloads of notifications that arrived before a reply.
    notifications: VecDeque<String>,
    /// Whether the server has sent a warning since the last [durable statement](Connection::batch_durable) began.
    has_warning: bool,
}

/// The statements that the server has prepared, by the address of their text. The map holds each text, so no other text
/// can have its address.
#[derive(Default)]
struct PreparedStatements {
    known: HashMap<usize, (Arc<str>, tokio_postgres::Statement)>,
    /// Whether the next transaction may run on another server connection, which does not know them. No statement is
    /// prepared then: each is parsed and executed in one message.
    is_pooled: bool,
}

impl PreparedStatements {
    /// Returns the prepared statement; prepares it first if the server does not know it.
    async fn of(
        &mut self,
        client: &Client,
        statement: &Statement<'_>,
    ) -> Result<tokio_postgres::Statement, RunError> {
        let address = statement.text.as_ptr().addr();
        if let Some((_, prepared)) = self.known.get(&address) {
            return Ok(prepared.clone());
        }
        let types: Vec<_> = statement.binds.iter().map(type_of).collect();
        let prepared = client.prepare_typed(&statement.text, &types).await?;
        if self.known.len() >= MAX_PREPARED {
            self.known.clear();
        }
        let known = (statement.text.clone(), prepared.clone());
        self.known.insert(address, known);
        Ok(prepared)
    }
}

/// The part of a connection that moves bytes, and the maximum wait for one reply.
struct Driver<'c> {
    io: &'c mut Io,
    answer_timeout: Option<Duration>,
    notifications: &'c mut VecDeque<String>,
    has_warning: &'c mut bool,
}

impl Driver<'_> {
    /// Runs `work`, which waits only for the connection, and moves bytes for it.
    async fn run<T>(self, work: impl Future<Output = Result<T, RunError>>) -> Result<T, RunError> {
        let Self {
            io,
            answer_timeout,
            notifications,
            has_warning,
        } = self;
        let mut work = pin!(work);
        let driven = poll_fn(|cx| {
            loop {
                if let Poll::Ready(done) = work.as_mut().poll(cx) {
                    return Poll::Ready(done);
                }
                match io.poll_message(cx) {
                    Poll::Ready(Some(Ok(AsyncMessage::Notification(notification)))) => {
                        notifications.push_back(notification.payload().to_owned());
                    }
                    Poll::Ready(Some(Ok(AsyncMessage::Notice(notice)))) => {
                        *has_warning |= notice.parsed_severity() == Some(Severity::Warning);
                    }
                    Poll::Ready(Some(Ok(_))) => {}
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error.into())),
                    Poll::Ready(None) => return Poll::Ready(Err(RunError::Closed)),
                    Poll::Pending => return work.as_mut().poll(cx),
                }
            }
        });
        match answer_timeout {
            Some(limit) => {
                let answered = timeout(limit, driven).await;
                answered.unwrap_or(Err(RunError::TimedOut))
            }
            None => driven.await,
        }
    }
}

/// Runs constant SQL. Returns the number in its last row, if any.
async fn query_number(client: &Client, text: &str) -> Result<Option<i64>, RunError> {
    let messages = client.simple_query(text).await?;
    let rows = messages.iter().rev();
    let mut numbers = rows.filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    Ok(numbers.next())
}

/// Runs constant SQL. Returns the position in its last row, if any: the timeline and the number of bytes.
async fn query_position(client: &Client, text: &str) -> Result<Option<Position>, RunError> {
    let messages = client.simple_query(text).await?;
    let rows = messages.iter().rev();
    let mut positions = rows.filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(Position {
            timeline: row.get(0)?.parse().ok()?,
            bytes: row.get(1)?.parse().ok()?,
        }),
        _ => None,
    });
    Ok(positions.next())
}

async fn execute(
    client: &Client,
    prepared: &mut PreparedStatements,
    statement: &Statement<'_>,
) -> Result<u64, RunError> {
    if prepared.is_pooled {
        return execute_unprepared(client, statement).await;
    }
    let known = prepared.of(client, statement).await?;
    let binds = statement.binds.iter().map(Parameter);
    Ok(client.execute_raw(&known, binds).await?)
}

/// Sends a statement that is not prepared. The first poll sends it, unless a value cannot be encoded.
async fn query_unprepared(
    client: &Client,
    statement: &Statement<'_>,
) -> Result<RowStream, tokio_postgres::Error> {
    let binds = statement.binds.iter();
    let binds = binds.map(|value| (Parameter(value), type_of(value)));
    client.query_typed_raw(&statement.text, binds).await
}

/// Runs a change that is not prepared. Returns the number of affected rows.
async fn execute_unprepared(client: &Client, statement: &Statement<'_>) -> Result<u64, RunError> {
    let mut rows = pin!(query_unprepared(client, statement).await?);
    while rows.try_next().await?.is_some() {}
    Ok(rows.rows_affected().unwrap_or(0))
}

async fn fetch(
    client: &Client,
    prepared: &mut PreparedStatements,
    statement: &Statement<'_>,
    visit: Visit<'_>,
    has_rows: &mut bool,
) -> Result<(), RunError> {
    let rows = if prepared.is_pooled {
        query_unprepared(client, statement).await?
    } else {
        let known = prepared.of(client, statement).await?;
        let binds = statement.binds.iter().map(Parameter);
        client.query_raw(&known, binds).await?
    };
    let (mut rows, mut uuids) = (pin!(rows), UuidTexts::default());
    while let Some(row) = rows.try_next().await? {
        *has_rows = true;
        let row = ResultRow::new(&row, statement.columns, &mut uuids);
        visit(&row.map_err(RunError::Visit)?).map_err(RunError::Visit)?;
    }
    Ok(())
}

/// Runs a change and commits. Both are sent together. If the change cannot be sent, no commit is sent.
///
/// The first poll of `execute` sends the change, unless a value cannot be encoded.
async fn execute_and_commit(
    client: &Client,
    execute: impl Future<Output = Result<u64, RunError>>,
) -> Result<(), RunError> {
    let mut execute = pin!(execute);
    let sent = poll_fn(|cx| Poll::Ready(execute.as_mut().poll(cx))).await;
    if let Poll::Ready(ended) = sent {
        ended?;
        return Ok(client.batch_execute("COMMIT").await?);
    }
    let (executed, committed) = join(execute, client.batch_execute("COMMIT")).await;
    executed?;
    Ok(committed?)
}

impl Connection {
    /// Opens a connection to one of the servers.
    pub(super) async fn open(options: &Options) -> Result<Self, StoreError> {
        let (client, io) = connect(options).await?;
        Ok(Self {
            client,
            io,
            prepared: PreparedStatements {
                is_pooled: options.is_pooled,
                ..PreparedStatements::default()
            },
            tls: Tls::clone(&options.tls),
            answer_timeout: options.answer_timeout,
            notifications: VecDeque::new(),
            has_warning: false,
        })
    }

    fn parts(&mut self) -> (Driver<'_>, &Client, &mut PreparedStatements) {
        let driver = Driver {
            io: &mut self.io,
            answer_timeout: self.answer_timeout,
            notifications: &mut self.notifications,
            has_warning: &mut self.has_warning,
        };
        (driver, &self.client, &mut self.prepared)
    }

    /// Sets the maximum wait for each reply; `None` means no limit. Returns the previous limit.
    pub(super) const fn set_answer_timeout(&mut self, limit: Option<Duration>) -> Option<Duration> {
        std::mem::replace(&mut self.answer_timeout, limit)
    }

    /// Runs constant SQL. Use it if the kind of failure does not matter to the caller.
    pub(super) async fn run(&mut self, text: &str) -> Result<(), StoreError> {
        self.batch(text).await.map_err(RunError::into_failure)
    }

    /// Runs constant SQL.
    pub(super) async fn batch(&mut self, text: &str) -> Result<(), RunError> {
        let (driver, client, _) = self.parts();
        driver
            .run(async { Ok(client.batch_execute(text).await?) })
            .await
    }

    /// Commits the transaction.
    pub(super) async fn commit(&mut self) -> Result<(), RunError> {
        self.batch_durable("COMMIT").await
    }

    /// Runs constant SQL that ends or prepares a transaction.
    ///
    /// # Errors
    /// Also [`RunError::Unconfirmed`].
    pub(super) async fn batch_durable(&mut self, text: &str) -> Result<(), RunError> {
        self.has_warning = false;
        self.batch(text).await?;
        self.check_confirmed()
    }

    /// Fails if the server sent a warning: the wait for a synchronous standby was cancelled, by `pg_cancel_backend` or
    /// by the statement timeout. The server then reports success, although a failover can lose the change.
    const fn check_confirmed(&self) -> Result<(), RunError> {
        match self.has_warning {
            true => Err(RunError::Unconfirmed),
            false => Ok(()),
        }
    }

    /// Runs constant SQL. Returns the number in its last row, if any.
    pub(super) async fn number(&mut self, text: &str) -> Result<Option<i64>, RunError> {
        let (driver, client, _) = self.parts();
        driver.run(query_number(client, text)).await
    }

    /// Runs a query that is not prepared, with text parameters. Returns its rows. The connection must not be pooled:
    /// the query is parsed in one transaction and runs in the next.
    pub(super) async fn query_rows(
        &mut self,
        query: &str,
        texts: &[&str],
    ) -> Result<Vec<tokio_postgres::Row>, RunError> {
        let (driver, client, _) = self.parts();
        let query = async {
            let rows = client.query_raw(query, texts).await?;
            Ok(rows.try_collect().await?)
        };
        driver.run(query).await
    }

    /// Runs constant SQL. Returns the position in its last row, if any.
    pub(super) async fn position(&mut self, text: &str) -> Result<Option<Position>, RunError> {
        let (driver, client, _) = self.parts();
        driver.run(query_position(client, text)).await
    }

    /// Runs a change. Returns the number of affected rows.
    pub(super) async fn execute(&mut self, statement: &Statement<'_>) -> Result<u64, RunError> {
        let (driver, client, prepared) = self.parts();
        driver.run(execute(client, prepared, statement)).await
    }

    /// Runs a query and passes its rows to the visitor. Sets `shown` once a row was passed.
    pub(super) async fn fetch(
        &mut self,
        statement: &Statement<'_>,
        visit: Visit<'_>,
        shown: &mut bool,
    ) -> Result<(), RunError> {
        let (driver, client, prepared) = self.parts();
        driver
            .run(fetch(client, prepared, statement, visit, shown))
            .await
    }

    /// Opens a transaction and runs a query in it. The query must change nothing, because it runs even if the
    /// transaction cannot be opened. Returns the number that the opening statement returned, see
    /// [`Connection::number`], and the outcome of the query.
    pub(super) async fn begin_and_fetch(
        &mut self,
        opening: &str,
        statement: &Statement<'_>,
        visit: Visit<'_>,
        shown: &mut bool,
    ) -> Result<(Option<i64>, Result<(), RunError>), RunError> {
        let (driver, client, prepared) = self.parts();
        let fetch = fetch(client, prepared, statement, visit, shown);
        let both = async {
            let (begun, fetched) = join(query_number(client, opening), fetch).await;
            Ok((begun?, fetched))
        };
        driver.run(both).await
    }

    /// Prepares a statement, unless it is already prepared or the connection is pooled.
    pub(super) async fn prepare(&mut self, statement: &Statement<'_>) -> Result<(), RunError> {
        let (driver, client, prepared) = self.parts();
        if prepared.is_pooled {
            return Ok(());
        }
        driver
            .run(async { prepared.of(client, statement).await.map(drop) })
            .await
    }

    /// Runs a prepared change and commits. The commit is sent together with the change, and has no effect if the change
    /// fails.
    pub(super) async fn execute_and_commit(
        &mut self,
        statement: &Statement<'_>,
    ) -> Result<(), RunError> {
        self.has_warning = false;
        let (driver, client, prepared) = self.parts();
        let both = async {
            if prepared.is_pooled {
                let execute = execute_unprepared(client, statement);
                return execute_and_commit(client, execute).await;
            }
            let known = prepared.of(client, statement).await?;
            let binds = statement.binds.iter().map(Parameter);
            let execute = async { Ok(client.execute_raw(&known, binds).await?) };
            execute_and_commit(client, execute).await
        };
        driver.run(both).await?;
        self.check_confirmed()
    }

    /// Ends an abandoned statement and its transaction. Returns whether the connection can be reused. A statement that
    /// takes longer is cancelled, unless it is a commit. The connection is not reused after a cancel request, because a
    /// late request would cancel the next statement.
    ///
    /// No cancel request goes to a pooler: PgBouncer 1.18 can stop after one. The caller closes the connection instead.
    /// PgBouncer then closes that to the server, which ends the statement at its next check of the client.
    pub(super) async fn end_abandoned_work(&mut self, can_cancel: bool) -> bool {
        let (token, tls) = (self.client.cancel_token(), Tls::clone(&self.tls));
        let is_pooled = self.prepared.is_pooled;
        let mut rollback = pin!(self.batch("ROLLBACK"));
        if let Ok(rolled_back) = timeout(CANCEL_DELAY, &mut rollback).await {
            return rolled_back.is_ok();
        }
        let settled = timeout(RELEASE_TIMEOUT, async {
            if !can_cancel {
                return rollback.await.is_ok();
            }
            if is_pooled {
                return false;
            }
            loop {
                // If no cancel request arrives, the server's timeout ends the statement.
                let _ = token.cancel_query(Tls::clone(&tls)).await;
                if timeout(CANCEL_PAUSE, &mut rollback).await.is_ok() {
                    return false;
                }
            }
        });
        settled.await.unwrap_or(false)
    }

    /// Tells the server that the connection ends, and closes it. That to a pooler is closed without waiting for replies,
    /// which ends the statement in progress.
    pub(super) async fn close(self) {
        if self.prepared.is_pooled {
            return;
        }
        let Self { client, mut io, .. } = self;
        drop(client);
        let ended = poll_fn(|cx| {
            loop {
                match io.poll_message(cx) {
                    Poll::Ready(Some(Ok(_))) => {}
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        });
        let _ = timeout(RELEASE_TIMEOUT, ended).await;
    }

    /// Sends constant SQL without waiting for the reply. Statements that are sent later run later. Returns whether it
    /// was sent.
    pub(super) fn send(&mut self, text: &str) -> bool {
        let Self { client, io, .. } = self;
        // The next user of the connection reads the reply, so no task needs to be woken.
        let mut cx = Context::from_waker(Waker::noop());
        if pin!(client.batch_execute(text)).poll(&mut cx).is_ready() {
            return false;
        }
        // It must be sent even if the task has used up its budget of polls.
        let write = unconstrained(poll_fn(|cx| {
            loop {
                match io.poll_message(cx) {
                    Poll::Ready(Some(Ok(_))) => {}
                    ended => return ended,
                }
            }
        }));
        pin!(write).poll(&mut cx).is_pending()
    }

    /// Waits for the next notification of a channel that the connection listens to. Returns its payload. After a long
    /// silence it checks that the server responds.
    pub(super) async fn next_notification(&mut self) -> Result<String, RunError> {
        loop {
            if let Some(payload) = self.notifications.pop_front() {
                return Ok(payload);
            }
            match timeout(NOTIFICATION_CHECK_INTERVAL, self.read_notification()).await {
                Ok(payload) => return payload,
                Err(_) => self.batch("").await?,
            }
        }
    }

    async fn read_notification(&mut self) -> Result<String, RunError> {
        loop {
            match poll_fn(|cx| self.io.poll_message(cx)).await {
                Some(Ok(AsyncMessage::Notification(notification))) => {
                    return Ok(notification.payload().to_owned());
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err(RunError::Closed),
            }
        }
    }
}

#[cfg(feature = "conformance")]
#[cfg(test)]
mod tests {
    use tokio_postgres::types::private::BytesMut;
    use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

    use super::*;
    use crate::testing;

    /// A value that cannot be encoded.
    #[derive(Debug)]
    struct Unencodable;

    impl ToSql for Unencodable {
        fn to_sql(
            &self,
            _: &Type,
            _: &mut BytesMut,
        ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
            Err("it cannot be encoded".into())
        }

        fn accepts(_: &Type) -> bool {
            true
        }

        to_sql_checked!();
    }

    #[tokio::test]
    async fn a_change_that_cannot_be_encoded_is_not_committed() {
        let database = testing::postgres().await;
        let client = testing::connect(&database.url).await;
        let create = "CREATE TABLE things (id BIGINT)";
        client.batch_execute(create).await.unwrap();
        let begin = "BEGIN; INSERT INTO things VALUES (1)";
        client.batch_execute(begin).await.unwrap();
        let insert = client.prepare("INSERT INTO things VALUES ($1)");
        let insert = insert.await.unwrap();
        let execute = async { Ok(client.execute_raw(&insert, [Unencodable]).await?) };
        let failed = execute_and_commit(&client, execute).await;
        assert!(failed.is_err());
        // A commit, if one had been sent, would have run before this statement.
        client.batch_execute("SELECT 1").await.unwrap();
        let other = testing::connect(&database.url).await;
        let rows = other.query_one("SELECT COUNT(*) FROM things", &[]);
        assert_eq!(rows.await.unwrap().get::<_, i64>(0), 0);
    }
}
