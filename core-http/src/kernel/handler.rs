//! Handlers: functions of a few forms.

use core_domain::kernel::Result;
use core_domain::port::UnitOfWork;

use super::answer::Answer;
use super::context::Cx;
use super::input::{Input, RawInput};

/// A handler in a unit of work: `async fn(&Cx, Scope, &mut dyn UnitOfWork, Input<P, Q, B>) -> Result<Answer>`.
pub trait UnitHandler<'a, S, P, Q, B, A>: Send + Sync + 'static {
    /// What the function answers.
    type Future: Future<Output = Result<A>> + Send + 'a;

    /// Calls the function.
    fn call(
        &self,
        cx: &'a Cx,
        scope: S,
        uow: &'a mut (dyn UnitOfWork + 'a),
        input: Input<P, Q, B>,
    ) -> Self::Future;
}

impl<'a, H, F, S, P, Q, B, A> UnitHandler<'a, S, P, Q, B, A> for H
where
    H: Fn(&'a Cx, S, &'a mut (dyn UnitOfWork + 'a), Input<P, Q, B>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<A>> + Send + 'a,
    A: Answer,
{
    type Future = F;

    fn call(
        &self,
        cx: &'a Cx,
        scope: S,
        uow: &'a mut (dyn UnitOfWork + 'a),
        input: Input<P, Q, B>,
    ) -> F {
        self(cx, scope, uow, input)
    }
}

/// A handler that opens its units itself: `async fn(&Cx, Scope, Input<P, Q, B>) -> Result<Answer>`.
pub trait PlainHandler<'a, S, P, Q, B, A>: Send + Sync + 'static {
    /// What the function answers.
    type Future: Future<Output = Result<A>> + Send + 'a;

    /// Calls the function.
    fn call(&self, cx: &'a Cx, scope: S, input: Input<P, Q, B>) -> Self::Future;
}

impl<'a, H, F, S, P, Q, B, A> PlainHandler<'a, S, P, Q, B, A> for H
where
    H: Fn(&'a Cx, S, Input<P, Q, B>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<A>> + Send + 'a,
    A: Answer,
{
    type Future = F;

    fn call(&self, cx: &'a Cx, scope: S, input: Input<P, Q, B>) -> F {
        self(cx, scope, input)
    }
}

/// A handler of uploads: `async fn(&Cx, Scope, RawInput<P, Q>) -> Result<Answer>`.
pub trait UploadHandler<'a, S, P, Q, A>: Send + Sync + 'static {
    /// What the function answers.
    type Future: Future<Output = Result<A>> + Send + 'a;

    /// Calls the function.
    fn call(&self, cx: &'a Cx, scope: S, input: RawInput<P, Q>) -> Self::Future;
}

impl<'a, H, F, S, P, Q, A> UploadHandler<'a, S, P, Q, A> for H
where
    H: Fn(&'a Cx, S, RawInput<P, Q>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<A>> + Send + 'a,
    A: Answer,
{
    type Future = F;

    fn call(&self, cx: &'a Cx, scope: S, input: RawInput<P, Q>) -> F {
        self(cx, scope, input)
    }
}
