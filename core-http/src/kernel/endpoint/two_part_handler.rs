//! The forms of handlers in two parts; see `super::two_parts`.

use std::ops::Deref;
use std::sync::Arc;

use core_domain::kernel::{Context, Result};
use core_domain::port::UnitOfWork;
use futures_util::future::BoxFuture;
use http::StatusCode;
use serde_json::Value;

use crate::kernel::admission::idempotency::Progress;
use crate::kernel::answer::reply::Reply;
use crate::kernel::process::app::App;
use crate::kernel::request::context::Cx;
use crate::kernel::request::input::Input;
use crate::kernel::request::parse::ParsedRequest;

/// The context of a second part, which goes on if the client disconnects. Dereferences to the domain's [`Context`].
#[derive(Clone, Debug)]
pub struct DetachedCx {
    /// The caller and the request.
    pub domain: Context,
    /// The ports and settings that all services share.
    pub app: Arc<App>,
}

impl Deref for DetachedCx {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.domain
    }
}

/// The first part of a handler: `async fn(&Cx, Arc<T>, Scope, &mut dyn UnitOfWork, Input<P, Q, B>) -> Result<Work>`.
pub trait FirstPart<'a, T, S, P, Q, B, W>: Send + Sync + 'static {
    /// The future that the function returns.
    type Future: Future<Output = Result<W>> + Send + 'a;

    /// Calls the function.
    fn call(
        &self,
        cx: &'a Cx,
        state: Arc<T>,
        scope: S,
        uow: &'a mut (dyn UnitOfWork + 'a),
        input: Input<P, Q, B>,
    ) -> Self::Future;
}

impl<'a, H, F, T, S, P, Q, B, W> FirstPart<'a, T, S, P, Q, B, W> for H
where
    H: Fn(&'a Cx, Arc<T>, S, &'a mut (dyn UnitOfWork + 'a), Input<P, Q, B>) -> F
        + Send
        + Sync
        + 'static,
    F: Future<Output = Result<W>> + Send + 'a,
{
    type Future = F;

    fn call(
        &self,
        cx: &'a Cx,
        state: Arc<T>,
        scope: S,
        uow: &'a mut (dyn UnitOfWork + 'a),
        input: Input<P, Q, B>,
    ) -> F {
        self(cx, state, scope, uow, input)
    }
}

/// What the first part has decided.
pub(crate) enum First {
    /// The request is a repetition of one that has ended.
    Replay(Reply),
    /// The first part has run now, and its work is to be committed.
    New(Value),
    /// An earlier run has stored this work, and its second part was interrupted.
    Resumed(Value),
}

impl First {
    pub(super) const fn is_new(&self) -> bool {
        matches!(self, Self::New(_))
    }
}

/// A type-erased first part.
pub(super) type FirstRun = dyn for<'a> Fn(
        &'a Cx,
        &'a mut (dyn UnitOfWork + 'a),
        &'a ParsedRequest,
        &'a Progress,
    ) -> BoxFuture<'a, Result<First>>
    + Send
    + Sync;

/// A type-erased second part.
pub(super) type SecondRun =
    dyn Fn(DetachedCx, Value, StatusCode) -> BoxFuture<'static, Result<Reply>> + Send + Sync;

/// Both parts of a handler, type-erased.
#[derive(Clone)]
pub(crate) struct TwoParts {
    pub(super) first: Arc<FirstRun>,
    pub(super) second: Arc<SecondRun>,
}
