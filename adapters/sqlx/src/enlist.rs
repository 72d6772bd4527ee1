//! Statements of the host program in the transaction of a unit of work.

use std::any::Any;
use std::marker::PhantomData;
use std::pin::Pin;

use async_trait::async_trait;
use core_domain::kernel::StoreError;
use core_domain::port::{Env, HostStatements, UnitOfWork};
use sqlx::postgres::PgConnection;

use crate::error::host_failure;

/// The future of a function that [`enlist`] calls: `Box::pin(async move { .. })`.
pub type HostWork<'c, T> = Pin<Box<dyn Future<Output = Result<T, sqlx::Error>> + Send + 'c>>;

/// Runs statements of the host program in the transaction of a unit of work that writes. They are committed together with
/// the unit, or not at all. If the unit is run again after a conflict, so are they: use
/// [`transact`](core_domain::port::transact).
///
/// ```
/// # use core_domain::{kernel::Result, port::UnitOfWork};
/// async fn add_order(unit: &mut dyn UnitOfWork, article: &str) -> Result<()> {
///     core_sqlx::enlist(unit, |connection, _| {
///         Box::pin(async move {
///             let insert = sqlx::query("INSERT INTO orders (article) VALUES ($1)").bind(article);
///             insert.execute(connection).await
///         })
///     })
///     .await?;
///     Ok(())
/// }
/// ```
///
/// - The search path is that of the host program. The isolation level and the timeouts are those of the unit.
/// - A transaction that the function begins on the connection is a savepoint. It must not run `COMMIT` or `ROLLBACK` as
///   text.
/// - The statements must not change the tables of the suite.
/// - Every error aborts the unit. A function that handles the error of a statement itself runs the statement in a
///   savepoint, and returns `Ok`.
///
/// # Errors
/// [`StoreError::Retry`] if a statement conflicts with a concurrent unit. [`StoreError::CommitUnknown`] if the function has
/// ended the transaction: its changes may be committed. Otherwise [`StoreError::Backend`], whose source
/// is the [`PostgresError`](core_storage::sql::postgres::PostgresError) of the statement, or if the unit is of another
/// store.
pub async fn enlist<'env, T, F>(unit: &mut dyn UnitOfWork, work: F) -> Result<T, StoreError>
where
    T: Send,
    F: for<'c> FnOnce(&'c mut PgConnection, Env<'c, 'env>) -> HostWork<'c, T> + Send,
{
    let mut statements = Statements {
        work: Some(work),
        value: None,
        borrows: PhantomData,
    };
    unit.enlist(&mut statements).await?;
    let value = statements.value;
    value.ok_or_else(|| StoreError::backend("the statements of the host program did not run"))
}

/// A function of the host program, and its return value.
struct Statements<'env, F, T> {
    work: Option<F>,
    value: Option<T>,
    borrows: PhantomData<&'env ()>,
}

#[async_trait]
impl<'env, T, F> HostStatements for Statements<'env, F, T>
where
    T: Send,
    F: for<'c> FnOnce(&'c mut PgConnection, Env<'c, 'env>) -> HostWork<'c, T> + Send,
{
    async fn run(&mut self, connection: &mut (dyn Any + Send)) -> Result<(), StoreError> {
        let connection = connection.downcast_mut::<PgConnection>();
        let connection = connection
            .ok_or_else(|| StoreError::backend("the store does not run on a pool of sqlx"))?;
        if let Some(work) = self.work.take() {
            let done = work(connection, PhantomData).await;
            self.value = Some(done.map_err(host_failure)?);
        }
        Ok(())
    }
}
