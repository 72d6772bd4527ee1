//! Handlers: functions of a few forms, and what is left of them when their types are forgotten.

use std::sync::Arc;

use core_domain::kernel::Result;
use core_domain::port::{Mode, UnitOfWork};
use futures_util::future::BoxFuture;

use super::parse::Parsed;
use super::{Body, Cx, Input, Output, RawInput, Reply};

/// A handler in a unit of work: `async fn(&Cx, &mut dyn UnitOfWork, Input<P, Q, B>) -> Result<Output<T>>`.
pub trait UnitHandler<'a, P, Q, B, T>: Send + Sync + 'static {
    /// What the function answers.
    type Answer: Future<Output = Result<Output<T>>> + Send + 'a;

    /// Calls the function.
    fn call(
        &self,
        cx: &'a Cx,
        uow: &'a mut (dyn UnitOfWork + 'a),
        input: Input<P, Q, B>,
    ) -> Self::Answer;
}

impl<'a, F, A, P, Q, B, T> UnitHandler<'a, P, Q, B, T> for F
where
    F: Fn(&'a Cx, &'a mut (dyn UnitOfWork + 'a), Input<P, Q, B>) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Output<T>>> + Send + 'a,
{
    type Answer = A;

    fn call(&self, cx: &'a Cx, uow: &'a mut (dyn UnitOfWork + 'a), input: Input<P, Q, B>) -> A {
        self(cx, uow, input)
    }
}

/// A handler that opens its units itself: `async fn(&Cx, Input<P, Q, B>) -> Result<Output<T>>`.
pub trait PlainHandler<'a, P, Q, B, T>: Send + Sync + 'static {
    /// What the function answers.
    type Answer: Future<Output = Result<Output<T>>> + Send + 'a;

    /// Calls the function.
    fn call(&self, cx: &'a Cx, input: Input<P, Q, B>) -> Self::Answer;
}

impl<'a, F, A, P, Q, B, T> PlainHandler<'a, P, Q, B, T> for F
where
    F: Fn(&'a Cx, Input<P, Q, B>) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Output<T>>> + Send + 'a,
{
    type Answer = A;

    fn call(&self, cx: &'a Cx, input: Input<P, Q, B>) -> A {
        self(cx, input)
    }
}

/// A handler of uploads: `async fn(&Cx, RawInput<P, Q>) -> Result<Output<T>>`.
pub trait UploadHandler<'a, P, Q, T>: Send + Sync + 'static {
    /// What the function answers.
    type Answer: Future<Output = Result<Output<T>>> + Send + 'a;

    /// Calls the function.
    fn call(&self, cx: &'a Cx, input: RawInput<P, Q>) -> Self::Answer;
}

impl<'a, F, A, P, Q, T> UploadHandler<'a, P, Q, T> for F
where
    F: Fn(&'a Cx, RawInput<P, Q>) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Output<T>>> + Send + 'a,
{
    type Answer = A;

    fn call(&self, cx: &'a Cx, input: RawInput<P, Q>) -> A {
        self(cx, input)
    }
}

type UnitRun = dyn for<'a> Fn(&'a Cx, &'a mut (dyn UnitOfWork + 'a), &'a Parsed) -> BoxFuture<'a, Result<Reply>>
    + Send
    + Sync;
type PlainRun = dyn for<'a> Fn(&'a Cx, &'a Parsed) -> BoxFuture<'a, Result<Reply>> + Send + Sync;
type UploadRun =
    dyn for<'a> Fn(&'a Cx, &'a Parsed, Body) -> BoxFuture<'a, Result<Reply>> + Send + Sync;

/// What a row does, its types forgotten.
#[derive(Clone)]
pub(super) enum Handler {
    Unit(Mode, Arc<UnitRun>),
    Plain(Arc<PlainRun>),
    Upload(Arc<UploadRun>),
}

// These tell the compiler that the closures hold for every lifetime.
pub(super) fn unit_run<F>(run: F) -> Arc<UnitRun>
where
    F: for<'a> Fn(
            &'a Cx,
            &'a mut (dyn UnitOfWork + 'a),
            &'a Parsed,
        ) -> BoxFuture<'a, Result<Reply>>
        + Send
        + Sync
        + 'static,
{
    Arc::new(run)
}

pub(super) fn plain_run<F>(run: F) -> Arc<PlainRun>
where
    F: for<'a> Fn(&'a Cx, &'a Parsed) -> BoxFuture<'a, Result<Reply>> + Send + Sync + 'static,
{
    Arc::new(run)
}

pub(super) fn upload_run<F>(run: F) -> Arc<UploadRun>
where
    F: for<'a> Fn(&'a Cx, &'a Parsed, Body) -> BoxFuture<'a, Result<Reply>> + Send + Sync + 'static,
{
    Arc::new(run)
}
