//! The forms of handler functions, as traits that such functions implement.

use std::sync::Arc;

use core_domain::kernel::Result;
use core_domain::port::UnitOfWork;

use super::context::Cx;
use crate::kernel::answer::reply::Answer;
use crate::kernel::request::input::{Input, RawInput};

/// A handler that runs in a unit of work:
/// `async fn(&Cx, Scope, &mut dyn UnitOfWork, Input<P, Q, B>) -> Result<Answer>`.
pub trait UnitHandler<'a, S, P, Q, B, A>: Send + Sync + 'static {
    /// The future that the function returns.
    type Future: Future<Output = Result<A>> + Send + 'a;

    /// Calls the handler function.
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

/// A handler that opens its units of work itself: `async fn(&Cx, Scope, Input<P, Q, B>) -> Result<Answer>`.
pub trait PlainHandler<'a, S, P, Q, B, A>: Send + Sync + 'static {
    /// The future that the function returns.
    type Future: Future<Output = Result<A>> + Send + 'a;

    /// Calls the handler function.
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

/// A handler that reads the request body itself: `async fn(&Cx, Scope, RawInput<P, Q>) -> Result<Answer>`.
pub trait UploadHandler<'a, S, P, Q, A>: Send + Sync + 'static {
    /// The future that the function returns.
    type Future: Future<Output = Result<A>> + Send + 'a;

    /// Calls the handler function.
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

/// A handler with shared state, which is its second argument. Created by [`with`].
#[derive(Debug)]
pub struct WithState<T, H> {
    state: Arc<T>,
    handler: H,
}

/// Passes shared state of a service to a handler, as the argument after the context.
pub fn with<T, H>(state: &Arc<T>, handler: H) -> WithState<T, H> {
    WithState {
        state: Arc::clone(state),
        handler,
    }
}

impl<'a, T, H, F, S, P, Q, B, A> UnitHandler<'a, S, P, Q, B, A> for WithState<T, H>
where
    T: Send + Sync + 'static,
    H: Fn(&'a Cx, Arc<T>, S, &'a mut (dyn UnitOfWork + 'a), Input<P, Q, B>) -> F
        + Send
        + Sync
        + 'static,
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
        (self.handler)(cx, Arc::clone(&self.state), scope, uow, input)
    }
}

impl<'a, T, H, F, S, P, Q, B, A> PlainHandler<'a, S, P, Q, B, A> for WithState<T, H>
where
    T: Send + Sync + 'static,
    H: Fn(&'a Cx, Arc<T>, S, Input<P, Q, B>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<A>> + Send + 'a,
    A: Answer,
{
    type Future = F;

    fn call(&self, cx: &'a Cx, scope: S, input: Input<P, Q, B>) -> F {
        (self.handler)(cx, Arc::clone(&self.state), scope, input)
    }
}

impl<'a, T, H, F, S, P, Q, A> UploadHandler<'a, S, P, Q, A> for WithState<T, H>
where
    T: Send + Sync + 'static,
    H: Fn(&'a Cx, Arc<T>, S, RawInput<P, Q>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<A>> + Send + 'a,
    A: Answer,
{
    type Future = F;

    fn call(&self, cx: &'a Cx, scope: S, input: RawInput<P, Q>) -> F {
        (self.handler)(cx, Arc::clone(&self.state), scope, input)
    }
}
