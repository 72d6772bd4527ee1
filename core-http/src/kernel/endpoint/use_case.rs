//! Handlers that only call a use case. A row names the use case and the parts of the request that it takes:
//! `.reads(call_with_id(entity::get))`.
//!
//! A use case has the signature `async fn(&Context, &Scope, &mut dyn UnitOfWork, ..) -> Result<T>`, or the same without
//! the context. The path consists of the parameters that the scope needs ([`Addressed`]), followed by those that the
//! use case takes. A row whose input needs conversion first has a handler function instead.

use std::sync::Arc;

use core_domain::access::{
    AccountScope, JobScope, MemberScope, MembershipScope, NewOrganizationScope, OperatorScope,
    OrganizationScope, PersonScope, PlatformScope, PublicScope, ServiceScope, SessionScope,
    SignedInScope,
};
use core_domain::kernel::{Context, JobId, OrganizationId, PermissionType, PlatformId, Result};
use core_domain::port::UnitOfWork;
use futures_util::future::BoxFuture;

use super::definition::Shape;
use super::handler::UnitHandler;
use super::scope::BySession;
use crate::kernel::answer::reply::Answer;
use crate::kernel::request::context::Cx;
use crate::kernel::request::input::{Input, PathParams};

/// A scope for use cases that rows call directly.
pub trait Addressed: Send + Sync + 'static {
    /// The path parameters from which the scope is opened.
    type Path: PathParams;
}

macro_rules! addressed {
    ($(<$permission:ident> $scope:ty: $path:ty;)+) => {
        $(impl<$permission: PermissionType> Addressed for $scope { type Path = $path; })+
    };
    ($($scope:ty: $path:ty;)+) => { $(impl Addressed for $scope { type Path = $path; })+ };
}
addressed! {
    <G> PlatformScope<G>: (PlatformId,);
    <G> MembershipScope<G>: (OrganizationId,);
    <G> JobScope<G>: (JobId,);
    <G> OrganizationScope<G>: ();
}
addressed! {
    MemberScope: (OrganizationId,);
    NewOrganizationScope: ();
    SignedInScope: ();
    PublicScope: ();
    PersonScope: ();
    AccountScope: ();
    SessionScope: ();
    OperatorScope: ();
    ServiceScope: ();
}

impl<S: Addressed> Addressed for BySession<S> {
    type Path = S::Path;
}

/// A list of path parameters with one more at its end.
pub trait Followed<I>: Sized {
    /// The longer list.
    type Path: PathParams;

    /// Returns the last parameter of the longer list.
    fn last(path: &Self::Path) -> &I;
}

macro_rules! followed {
    ($($name:ident),*; $index:tt) => {
        impl<$($name,)* I> Followed<I> for ($($name,)*)
        where
            ($($name,)* I,): PathParams,
        {
            type Path = ($($name,)* I,);

            fn last(path: &Self::Path) -> &I {
                &path.$index
            }
        }
    };
}
followed!(; 0);
followed!(A; 1);
followed!(A, B; 2);

/// The path of a use case that takes an id: the parameters of the scope, then the id.
type PathWith<S, I> = <<S as Addressed>::Path as Followed<I>>::Path;

/// A use case with the arguments `Args` after the unit of work. The mark `M` distinguishes the signatures.
pub trait UseCase<'a, M, S, Args, T>: Copy + Send + Sync + 'static {
    /// The future that the function returns.
    type Future: Future<Output = Result<T>> + Send + 'a;

    /// Calls the use case.
    fn call(
        self,
        cx: &'a Context,
        scope: &'a S,
        uow: &'a mut (dyn UnitOfWork + 'a),
        args: Args,
    ) -> Self::Future;
}

/// Marks use cases that take the context.
#[derive(Debug)]
pub struct TakesContext;

/// Marks use cases that do not take the context.
#[derive(Debug)]
pub struct TakesNoContext;

macro_rules! use_cases {
    ($($name:ident $index:tt),*) => {
        impl<'a, H, F, S, T, $($name),*> UseCase<'a, TakesContext, S, ($($name,)*), T> for H
        where
            H: Fn(&'a Context, &'a S, &'a mut (dyn UnitOfWork + 'a), $($name),*) -> F
                + Copy + Send + Sync + 'static,
            S: 'a,
            F: Future<Output = Result<T>> + Send + 'a,
        {
            type Future = F;

            fn call(
                self,
                cx: &'a Context,
                scope: &'a S,
                uow: &'a mut (dyn UnitOfWork + 'a),
                _args: ($($name,)*),
            ) -> F {
                self(cx, scope, uow, $(_args.$index),*)
            }
        }

        impl<'a, H, F, S, T, $($name),*> UseCase<'a, TakesNoContext, S, ($($name,)*), T> for H
        where
            H: Fn(&'a S, &'a mut (dyn UnitOfWork + 'a), $($name),*) -> F
                + Copy + Send + Sync + 'static,
            S: 'a,
            F: Future<Output = Result<T>> + Send + 'a,
        {
            type Future = F;

            fn call(
                self,
                _: &'a Context,
                scope: &'a S,
                uow: &'a mut (dyn UnitOfWork + 'a),
                _args: ($($name,)*),
            ) -> F {
                self(scope, uow, $(_args.$index),*)
            }
        }
    };
}
use_cases!();
use_cases!(A 0);
use_cases!(A 0, B 1);

/// The handler of a row that calls a use case, with the type of its answer erased to `A`.
pub struct CallsUseCase<S, P, Q, B, A>(Arc<Run<S, P, Q, B, A>>);

type Run<S, P, Q, B, A> = dyn for<'a> Fn(&'a Cx, S, &'a mut (dyn UnitOfWork + 'a), Input<P, Q, B>) -> BoxFuture<'a, Result<A>>
    + Send
    + Sync;

impl<S, P, Q, B, A> std::fmt::Debug for CallsUseCase<S, P, Q, B, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallsUseCase").finish_non_exhaustive()
    }
}

impl<S, P, Q, B, A> CallsUseCase<S, P, Q, B, A>
where
    S: 'static,
    P: 'static,
    Q: 'static,
    B: 'static,
    A: 'static,
{
    // A closure that passes through this function is inferred to be valid for every lifetime.
    fn new<R>(run: R) -> Self
    where
        R: for<'a> Fn(
                &'a Cx,
                S,
                &'a mut (dyn UnitOfWork + 'a),
                Input<P, Q, B>,
            ) -> BoxFuture<'a, Result<A>>
            + Send
            + Sync
            + 'static,
    {
        Self(Arc::new(run))
    }

    /// Converts the result of the use case to the answer of the row.
    #[must_use]
    pub fn map<V: 'static>(
        self,
        view: impl Fn(A) -> V + Copy + Send + Sync + 'static,
    ) -> CallsUseCase<S, P, Q, B, V> {
        let Self(run) = self;
        CallsUseCase::new(move |cx, scope, uow, input| {
            let found = run(cx, scope, uow, input);
            Box::pin(async move { found.await.map(view) })
        })
    }
}

impl<'a, S, P, Q, B, A> UnitHandler<'a, S, P, Q, B, A> for CallsUseCase<S, P, Q, B, A>
where
    S: 'static,
    P: 'static,
    Q: 'static,
    B: 'static,
    A: Answer,
{
    type Future = BoxFuture<'a, Result<A>>;

    fn call(
        &self,
        cx: &'a Cx,
        scope: S,
        uow: &'a mut (dyn UnitOfWork + 'a),
        input: Input<P, Q, B>,
    ) -> Self::Future {
        (self.0)(cx, scope, uow, input)
    }
}

/// Calls a use case that takes nothing of the request besides the scope's path parameters.
#[must_use]
pub fn call<S, M, T, H>(use_case: H) -> CallsUseCase<S, S::Path, (), (), T>
where
    S: Addressed,
    T: 'static,
    H: for<'a> UseCase<'a, M, S, (), T>,
{
    CallsUseCase::new(move |cx, scope, uow, _| {
        Box::pin(async move { use_case.call(cx, &scope, uow, ()).await })
    })
}

/// Calls a use case with the last path parameter.
#[must_use]
pub fn call_with_id<S, M, I, T, H>(use_case: H) -> CallsUseCase<S, PathWith<S, I>, (), (), T>
where
    S: Addressed,
    S::Path: Followed<I>,
    I: 'static,
    T: 'static,
    H: for<'a> UseCase<'a, M, S, (&'a I,), T>,
{
    CallsUseCase::new(move |cx, scope, uow, input| {
        Box::pin(async move {
            use_case
                .call(cx, &scope, uow, (S::Path::last(&input.path),))
                .await
        })
    })
}

/// Calls a use case with the query.
#[must_use]
pub fn call_with_query<S, M, Q, T, H>(use_case: H) -> CallsUseCase<S, S::Path, Q, (), T>
where
    S: Addressed,
    Q: Shape,
    T: 'static,
    H: for<'a> UseCase<'a, M, S, (&'a Q,), T>,
{
    CallsUseCase::new(move |cx, scope, uow, input| {
        Box::pin(async move { use_case.call(cx, &scope, uow, (&input.query,)).await })
    })
}

/// Calls a use case with the body.
#[must_use]
pub fn call_with_body<S, M, B, T, H>(use_case: H) -> CallsUseCase<S, S::Path, (), B, T>
where
    S: Addressed,
    B: Shape,
    T: 'static,
    H: for<'a> UseCase<'a, M, S, (B,), T>,
{
    CallsUseCase::new(move |cx, scope, uow, input| {
        Box::pin(async move { use_case.call(cx, &scope, uow, (input.body,)).await })
    })
}

/// Calls a use case with the last path parameter and the query.
#[must_use]
pub fn call_with_id_and_query<S, M, I, Q, T, H>(
    use_case: H,
) -> CallsUseCase<S, PathWith<S, I>, Q, (), T>
where
    S: Addressed,
    S::Path: Followed<I>,
    I: 'static,
    Q: Shape,
    T: 'static,
    H: for<'a> UseCase<'a, M, S, (&'a I, &'a Q), T>,
{
    CallsUseCase::new(move |cx, scope, uow, input| {
        Box::pin(async move {
            use_case
                .call(cx, &scope, uow, (S::Path::last(&input.path), &input.query))
                .await
        })
    })
}

/// Calls a use case with the last path parameter and the body.
#[must_use]
pub fn call_with_id_and_body<S, M, I, B, T, H>(
    use_case: H,
) -> CallsUseCase<S, PathWith<S, I>, (), B, T>
where
    S: Addressed,
    S::Path: Followed<I>,
    I: 'static,
    B: Shape,
    T: 'static,
    H: for<'a> UseCase<'a, M, S, (&'a I, B), T>,
{
    CallsUseCase::new(move |cx, scope, uow, input| {
        Box::pin(async move {
            use_case
                .call(cx, &scope, uow, (S::Path::last(&input.path), input.body))
                .await
        })
    })
}
