//! Authorization of endpoints: a handler takes a scope of `core_domain::access`, and the endpoint layer opens it.
//!
//! The type of the scope also defines the requirement on the caller, which is checked before the request is read.

use std::ops::Deref;

use core_domain::access::{
    AccountScope, JobScope, MemberScope, MembershipScope, NewOrganizationScope, OperatorScope,
    OrganizationRef, OrganizationScope, PersonScope, PlatformScope, PublicScope, Requirement,
    ServiceScope, SessionScope, SignedInScope, authorize, authorize_account, authorize_job,
    authorize_member, authorize_membership, authorize_new_organization, authorize_operator,
    authorize_organization, authorize_person, authorize_service, authorize_session,
    authorize_signed_in,
};
use core_domain::kernel::{
    Code, Context, JobId, OrganizationId, PermissionType, PlatformId, Result,
};
use core_domain::port::UnitOfWork;
use futures_util::future::BoxFuture;

use crate::kernel::request::input::{Input, PathParams};

/// A scope that is opened for a request with the input `I`, in the unit of work of the handler.
pub trait OpenScope<I>: Sized + Send + 'static {
    /// The requirement on the caller of rows with this scope.
    const REQUIREMENT: Requirement;

    /// Authorizes the caller.
    ///
    /// # Errors
    /// Those of the scope's `authorize` function: `UNAUTHORIZED`, `NOT_FOUND`, `FORBIDDEN`, `PLATFORM_SUSPENDED` or
    /// `INVALID_STATE`.
    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a I,
    ) -> BoxFuture<'a, Result<Self>>;
}

/// A scope that depends only on the caller, not on records.
pub trait CallerScope: Sized + Send + 'static {
    /// The requirement on the caller of rows with this scope.
    const REQUIREMENT: Requirement;

    /// Authorizes the caller.
    ///
    /// # Errors
    /// Those of the scope's `authorize` function: `UNAUTHORIZED` or `FORBIDDEN`.
    fn open(cx: &Context) -> Result<Self>;
}

/// A request on a platform. The id is the first path parameter, or the field that an implementation returns.
pub trait OnPlatform {
    /// Returns the id of the platform.
    fn platform_id(&self) -> &PlatformId;
}

/// A request on an organization. The id is the first path parameter, or an implementation returns another reference.
pub trait OnOrganization {
    /// Returns the reference to the organization.
    fn organization(&self) -> OrganizationRef<'_>;
}

// Implements both traits for inputs whose first path parameter is the id.
macro_rules! named_by_first_parameter {
    ($($others:ident),*) => {
        impl<$($others,)* Q, B> OnPlatform for Input<(PlatformId, $($others,)*), Q, B>
        where
            (PlatformId, $($others,)*): PathParams,
        {
            fn platform_id(&self) -> &PlatformId {
                &self.path.0
            }
        }

        impl<$($others,)* Q, B> OnOrganization for Input<(OrganizationId, $($others,)*), Q, B>
        where
            (OrganizationId, $($others,)*): PathParams,
        {
            fn organization(&self) -> OrganizationRef<'_> {
                OrganizationRef::Id(&self.path.0)
            }
        }
    };
}
named_by_first_parameter!();
named_by_first_parameter!(X);
named_by_first_parameter!(X, Y);

impl<G: PermissionType, I: OnPlatform + Sync> OpenScope<I> for PlatformScope<G> {
    const REQUIREMENT: Requirement = Requirement::Permission(G::PERMISSION);

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a I,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize(cx, uow, input.platform_id()))
    }
}

impl<G: PermissionType, I: OnOrganization + Sync> OpenScope<I> for MembershipScope<G> {
    const REQUIREMENT: Requirement = Requirement::Permission(G::PERMISSION);

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a I,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize_membership(cx, uow, input.organization()))
    }
}

impl<I: OnOrganization + Sync> OpenScope<I> for MemberScope {
    const REQUIREMENT: Requirement = Requirement::SignedIn;

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a I,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize_member(cx, uow, input.organization()))
    }
}

/// The scope is `None` if the request names no organization and the caller acts for none.
impl<I: Sync, S: OpenScope<I>> OpenScope<I> for Option<S> {
    const REQUIREMENT: Requirement = S::REQUIREMENT;

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a I,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(async move {
            match S::open(cx, uow, input).await {
                Err(error) if error.code() == Code::NoActiveOrganization => Ok(None),
                opened => opened.map(Some),
            }
        })
    }
}

/// A scope that requires a person with a session. API keys and services are refused with 401.
#[derive(Clone, Debug)]
pub struct BySession<S> {
    /// The scope on the caller's session.
    pub session: SessionScope,
    /// The scope that was opened in addition, to which this type dereferences.
    pub scope: S,
}

impl<S> Deref for BySession<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.scope
    }
}

impl<I: Sync, S: OpenScope<I>> OpenScope<I> for BySession<S> {
    const REQUIREMENT: Requirement = S::REQUIREMENT.by_session();

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a I,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(async move {
            let session = authorize_session(cx)?;
            let scope = S::open(cx, uow, input).await?;
            Ok(Self { session, scope })
        })
    }
}

impl<G: PermissionType, Q: Sync, B: Sync> OpenScope<Input<(JobId,), Q, B>> for JobScope<G> {
    const REQUIREMENT: Requirement = Requirement::Permission(G::PERMISSION);

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a Input<(JobId,), Q, B>,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize_job(cx, uow, &input.path.0))
    }
}

impl<G: PermissionType, I> OpenScope<I> for OrganizationScope<G> {
    const REQUIREMENT: Requirement = Requirement::Permission(G::PERMISSION);

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        _input: &'a I,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize_organization(cx, uow))
    }
}

impl<I> OpenScope<I> for NewOrganizationScope {
    const REQUIREMENT: Requirement = Requirement::NewOrganization;

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        _input: &'a I,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize_new_organization(cx, uow))
    }
}

impl<I> OpenScope<I> for SignedInScope {
    const REQUIREMENT: Requirement = Requirement::SignedIn;

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        _input: &'a I,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize_signed_in(cx, uow))
    }
}

// Implements both traits for scopes that depend only on the caller.
macro_rules! caller_scopes {
    ($($scope:ty: $requirement:ident, $open:expr;)+) => {$(
        impl CallerScope for $scope {
            const REQUIREMENT: Requirement = Requirement::$requirement;

            fn open(cx: &Context) -> Result<Self> {
                let open: fn(&Context) -> Result<Self> = $open;
                open(cx)
            }
        }

        impl<I> OpenScope<I> for $scope {
            const REQUIREMENT: Requirement = <Self as CallerScope>::REQUIREMENT;

            fn open<'a>(
                cx: &'a Context,
                _uow: &'a mut dyn UnitOfWork,
                _input: &'a I,
            ) -> BoxFuture<'a, Result<Self>> {
                Box::pin(std::future::ready(<Self as CallerScope>::open(cx)))
            }
        }
    )+};
}
caller_scopes! {
    PublicScope: Public, |_| Ok(PublicScope::open());
    PersonScope: Person, authorize_person;
    AccountScope: Account, authorize_account;
    SessionScope: Session, authorize_session;
    OperatorScope: Operator, authorize_operator;
    ServiceScope: Service, authorize_service;
}
