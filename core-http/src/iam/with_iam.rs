//! Handlers that need IAM's settings besides their input.

use std::sync::Arc;

use core_domain::kernel::Result;
use core_domain::port::UnitOfWork;

use super::config::Iam;
use crate::kernel::{Cx, Input, Output, PlainHandler, UnitHandler};

/// A handler and the settings it is given after its context.
pub(super) struct WithIam<F> {
    iam: Arc<Iam>,
    handler: F,
}

impl<F> WithIam<F> {
    pub(super) fn new(iam: &Arc<Iam>, handler: F) -> Self {
        Self {
            iam: Arc::clone(iam),
            handler,
        }
    }
}

impl<'a, F, A, P, Q, B, T> PlainHandler<'a, P, Q, B, T> for WithIam<F>
where
    F: Fn(&'a Cx, Arc<Iam>, Input<P, Q, B>) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Output<T>>> + Send + 'a,
{
    type Answer = A;

    fn call(&self, cx: &'a Cx, input: Input<P, Q, B>) -> A {
        (self.handler)(cx, Arc::clone(&self.iam), input)
    }
}

impl<'a, F, A, P, Q, B, T> UnitHandler<'a, P, Q, B, T> for WithIam<F>
where
    F: Fn(&'a Cx, Arc<Iam>, &'a mut (dyn UnitOfWork + 'a), Input<P, Q, B>) -> A
        + Send
        + Sync
        + 'static,
    A: Future<Output = Result<Output<T>>> + Send + 'a,
{
    type Answer = A;

    fn call(&self, cx: &'a Cx, uow: &'a mut (dyn UnitOfWork + 'a), input: Input<P, Q, B>) -> A {
        (self.handler)(cx, Arc::clone(&self.iam), uow, input)
    }
}
