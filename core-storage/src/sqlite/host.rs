//! Statements of the host program in the transaction of a unit of work.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use core_domain::kernel::StoreError;
use core_domain::port::{HostStatements, UnitOfWork};
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use super::error::statement_error;

/// Runs statements of the host program in the transaction of a unit of work that writes. They are committed together with
/// the unit, or not at all. If the unit is run again after a conflict, so are they: use
/// [`transact`](core_domain::port::transact).
///
/// The function is called on the current thread, while all other writers wait. Read and write few rows in it.
///
/// - `BEGIN`, `COMMIT` and `ROLLBACK` are refused. Savepoints are allowed, except with the names `unit` and `host`.
/// - `OR ROLLBACK` in a statement also undoes the concurrent units that would be committed together with this one.
/// - The statements must not change the tables of the suite.
/// - Every error aborts the unit. A function that handles the error of a statement itself returns `Ok`.
///
/// # Errors
/// [`StoreError::Backend`] with the [`rusqlite::Error`] of the function, or if the unit is of another store.
pub async fn enlist<T, F>(unit: &mut dyn UnitOfWork, work: F) -> Result<T, StoreError>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send,
{
    let mut statements = Statements {
        work: Some(work),
        value: None,
    };
    unit.enlist(&mut statements).await?;
    let value = statements.value;
    value.ok_or_else(|| StoreError::backend("the statements of the host program did not run"))
}

/// A function of the host program, and its return value.
struct Statements<F, T> {
    work: Option<F>,
    value: Option<T>,
}

#[async_trait]
impl<T, F> HostStatements for Statements<F, T>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send,
{
    async fn run(&mut self, connection: &mut (dyn Any + Send)) -> Result<(), StoreError> {
        let connection = connection.downcast_mut::<Connection>();
        let connection =
            connection.ok_or_else(|| StoreError::backend("the store is not a SQLite store"))?;
        if let Some(work) = self.work.take() {
            self.value = Some(work(connection).map_err(statement_error)?);
        }
        Ok(())
    }
}

/// Keeps the host program from ending the transaction, which other units of the group share.
#[derive(Debug)]
pub(super) struct HostGuard(Arc<AtomicBool>);

impl HostGuard {
    /// Installs the guard on the connection that writes.
    pub(super) fn install(connection: &Connection) -> Result<Self, rusqlite::Error> {
        let is_host = Arc::new(AtomicBool::new(false));
        let prepares = is_host.clone();
        connection.authorizer(Some(move |context: AuthContext<'_>| {
            match prepares.load(Ordering::Relaxed) && ends_transaction(&context.action) {
                true => Authorization::Deny,
                false => Authorization::Allow,
            }
        }))?;
        // A statement of the engine that is still prepared needs no authorization. Its commit becomes a rollback.
        let commits = is_host.clone();
        connection.commit_hook(Some(move || commits.load(Ordering::Relaxed)))?;
        Ok(Self(is_host))
    }

    /// Starts to guard, until the returned value is dropped.
    pub(super) fn enter(&self) -> HostEntered {
        self.0.store(true, Ordering::Relaxed);
        HostEntered(self.0.clone())
    }
}

/// The host program uses the connection.
pub(super) struct HostEntered(Arc<AtomicBool>);

impl Drop for HostEntered {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

fn ends_transaction(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Transaction { .. } => true,
        AuthAction::Savepoint { savepoint_name, .. } => ["unit", "host"]
            .iter()
            .any(|name| savepoint_name.eq_ignore_ascii_case(name)),
        _ => false,
    }
}
