//! A connection, driven by whoever uses it: no task of its own stands between a statement and the socket.
//!
//! Statements that do not depend on each other's answers are sent together and answered in order.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use core_domain::kernel::StoreError;
use futures_util::TryStreamExt;
use futures_util::future::join;
use tokio::task::unconstrained;
use tokio_postgres::{AsyncMessage, Client, SimpleQueryMessage, Socket};

use super::error::RunError;
use super::options::Options;
use super::tls::TlsStream;
use super::values::{Answer, Bound, type_of};
use crate::sql::Statement;
use crate::value::Visit;

/// More shapes of statements than a program has; a connection that knows more starts over.
const MAX_PREPARED: usize = 1_024;

/// The side of a connection that reads and writes the socket.
type Io = tokio_postgres::Connection<Socket, TlsStream>;

/// A connection.
pub(super) struct Connection {
    client: Client,
    io: Io,
    prepared: Prepared,
}

/// The statements that the server has prepared, by the address of their text: a text that is held has an address of its
/// own.
#[derive(Default)]
struct Prepared(HashMap<usize, (Arc<str>, tokio_postgres::Statement)>);

impl Prepared {
    /// The statement as the server knows it.
    async fn of(
        &mut self,
        client: &Client,
        statement: &Statement<'_>,
    ) -> Result<tokio_postgres::Statement, RunError> {
        let address = statement.text.as_ptr().addr();
        if let Some((_, prepared)) = self.0.get(&address) {
            return Ok(prepared.clone());
        }
        let types: Vec<_> = statement.binds.iter().map(type_of).collect();
        let prepared = client.prepare_typed(&statement.text, &types).await?;
        if self.0.len() >= MAX_PREPARED {
            self.0.clear();
        }
        let known = (statement.text.clone(), prepared.clone());
        self.0.insert(address, known);
        Ok(prepared)
    }
}

/// Runs `work`, which waits for the connection alone, and moves bytes for it.
async fn drive<T>(
    io: &mut Io,
    work: impl Future<Output = Result<T, RunError>>,
) -> Result<T, RunError> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        loop {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            match io.poll_message(cx) {
                // A notice.
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error.into())),
                Poll::Ready(None) => return Poll::Ready(Err(RunError::Closed)),
                Poll::Pending => return work.as_mut().poll(cx),
            }
        }
    })
    .await
}

/// Runs text of this crate; answers the number in its last row, if any.
async fn number(client: &Client, text: &str) -> Result<Option<i64>, RunError> {
    let messages = client.simple_query(text).await?;
    let rows = messages.iter().rev();
    let mut numbers = rows.filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    Ok(numbers.next())
}

async fn execute(
    client: &Client,
    prepared: &mut Prepared,
    statement: &Statement<'_>,
) -> Result<u64, RunError> {
    let known = prepared.of(client, statement).await?;
    let binds = statement.binds.iter().map(Bound);
    Ok(client.execute_raw(&known, binds).await?)
}

async fn fetch(
    client: &Client,
    prepared: &mut Prepared,
    statement: &Statement<'_>,
    visit: Visit<'_>,
    shown: &mut bool,
) -> Result<(), RunError> {
    let known = prepared.of(client, statement).await?;
    let binds = statement.binds.iter().map(Bound);
    let mut rows = pin!(client.query_raw(&known, binds).await?);
    while let Some(row) = rows.try_next().await? {
        *shown = true;
        let (row, columns) = (&row, statement.columns);
        visit(&Answer { row, columns }).map_err(RunError::Visit)?;
    }
    Ok(())
}

impl Connection {
    /// Opens one.
    pub(super) async fn open(options: &Options) -> Result<Self, StoreError> {
        let Options { config, tls } = options.clone();
        let opened = config.connect(tls).await;
        let (client, io) = opened.map_err(|error| RunError::from(error).into_failure())?;
        let prepared = Prepared::default();
        Ok(Self {
            client,
            io,
            prepared,
        })
    }

    fn parts(&mut self) -> (&mut Io, &Client, &mut Prepared) {
        (&mut self.io, &self.client, &mut self.prepared)
    }

    /// Runs text of this crate, where it does not matter what a failure means for a unit's course.
    pub(super) async fn run(&mut self, text: &str) -> Result<(), StoreError> {
        self.batch(text).await.map_err(RunError::into_failure)
    }

    /// Runs text of this crate.
    pub(super) async fn batch(&mut self, text: &str) -> Result<(), RunError> {
        let Self { client, io, .. } = self;
        drive(io, async { Ok(client.batch_execute(text).await?) }).await
    }

    /// Runs text of this crate; answers the number in its last row, if any.
    pub(super) async fn number(&mut self, text: &str) -> Result<Option<i64>, RunError> {
        let Self { client, io, .. } = self;
        drive(io, number(client, text)).await
    }

    /// Runs a query of this crate; answers its rows.
    pub(super) async fn rows(
        &mut self,
        query: &str,
        texts: &[&str],
    ) -> Result<Vec<tokio_postgres::Row>, RunError> {
        let Self { client, io, .. } = self;
        let query = async {
            let rows = client.query_raw(query, texts).await?;
            Ok(rows.try_collect().await?)
        };
        drive(io, query).await
    }

    /// Runs a change; tells how many rows it affected.
    pub(super) async fn execute(&mut self, statement: &Statement<'_>) -> Result<u64, RunError> {
        let (io, client, prepared) = self.parts();
        drive(io, execute(client, prepared, statement)).await
    }

    /// Runs a query and shows its rows; `shown` tells whether any was.
    pub(super) async fn fetch(
        &mut self,
        statement: &Statement<'_>,
        visit: Visit<'_>,
        shown: &mut bool,
    ) -> Result<(), RunError> {
        let (io, client, prepared) = self.parts();
        drive(io, fetch(client, prepared, statement, visit, shown)).await
    }

    /// Opens a transaction and runs a query in it, which must change nothing: it runs even when the transaction could not
    /// be opened. Answers what the opening answers, as [`Connection::number`] does, and how the query ended.
    pub(super) async fn begin_and_fetch(
        &mut self,
        opening: &str,
        statement: &Statement<'_>,
        visit: Visit<'_>,
        shown: &mut bool,
    ) -> Result<(Option<i64>, Result<(), RunError>), RunError> {
        let (io, client, prepared) = self.parts();
        let fetch = fetch(client, prepared, statement, visit, shown);
        let both = async {
            let (begun, fetched) = join(number(client, opening), fetch).await;
            Ok((begun?, fetched))
        };
        drive(io, both).await
    }

    /// Has the server prepare a statement, unless it knows it.
    pub(super) async fn prepare(&mut self, statement: &Statement<'_>) -> Result<(), RunError> {
        let (io, client, prepared) = self.parts();
        drive(io, async { prepared.of(client, statement).await.map(drop) }).await
    }

    /// Runs a change that is prepared and commits. The commit is sent with the change, and does nothing when that fails.
    pub(super) async fn execute_and_commit(
        &mut self,
        statement: &Statement<'_>,
        commit: &str,
    ) -> Result<(), RunError> {
        let (io, client, prepared) = self.parts();
        let both = async {
            let known = prepared.of(client, statement).await?;
            let binds = statement.binds.iter().map(Bound);
            let execute = client.execute_raw(&known, binds);
            let (executed, committed) = join(execute, client.batch_execute(commit)).await;
            executed?;
            Ok(committed?)
        };
        drive(io, both).await
    }

    /// Sends text of this crate without waiting for the answer; what is sent afterwards is run afterwards. Tells whether
    /// the connection took it.
    pub(super) fn send(&mut self, text: &str) -> bool {
        let Self { client, io, .. } = self;
        // Whoever uses the connection next reads the answer: nobody is woken for it.
        let mut cx = Context::from_waker(Waker::noop());
        if pin!(client.batch_execute(text)).poll(&mut cx).is_ready() {
            return false;
        }
        // A task that has used up its share of polls must send it as well.
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

    /// Waits for the next notification of a channel that it listens to.
    pub(super) async fn notified(&mut self) -> Result<(), RunError> {
        loop {
            match poll_fn(|cx| self.io.poll_message(cx)).await {
                Some(Ok(AsyncMessage::Notification(_))) => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err(RunError::Closed),
            }
        }
    }
}
