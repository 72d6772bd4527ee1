//! How an endpoint lets its caller in: by opening the scope that its handler takes.

use core_domain::access::{
    JobScope, MembershipScope, OperatorScope, OrganizationScope, PersonScope, PlatformScope,
    PublicScope, Requirement, ServiceScope, SessionScope, SignedInScope, authorize, authorize_job,
    authorize_membership, authorize_operator, authorize_organization, authorize_person,
    authorize_service, authorize_session, authorize_signed_in,
};
use core_domain::kernel::{Context, Grant, JobId, OrganizationId, PlatformId, Result};
use core_domain::port::UnitOfWork;
use futures_util::future::BoxFuture;

use super::input::{Input, PathParams};

/// A scope that can be opened for a request with this input. The endpoint layer opens it in the unit of work of the
/// handler; the row takes its requirement from it.
pub trait OpenScope<I>: Sized + Send + 'static {
    /// What is demanded of the caller.
    const REQUIREMENT: Requirement;

    /// Lets the caller in.
    ///
    /// # Errors
    /// `UNAUTHORIZED`, `NOT_FOUND`, `FORBIDDEN`, `PLATFORM_SUSPENDED`, `INVALID_STATE`, as the scope says.
    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a I,
    ) -> BoxFuture<'a, Result<Self>>;
}

/// A scope that asks for nothing but the caller.
pub trait CallerScope: Sized + Send + 'static {
    /// What is demanded of the caller.
    const REQUIREMENT: Requirement;

    /// Lets the caller in.
    ///
    /// # Errors
    /// `UNAUTHORIZED`, `FORBIDDEN`, as the scope says.
    fn open(cx: &Context) -> Result<Self>;
}

/// A request that names a platform: in the first parameter of its path, or wherever an implementation says.
pub trait OnPlatform {
    /// The platform.
    fn platform_id(&self) -> &PlatformId;
}

/// A request that names an organization: in the first parameter of its path, or wherever an implementation says.
pub trait OnOrganization {
    /// The organization.
    fn organization_id(&self) -> &OrganizationId;
}

/// Requests whose path begins with the id.
macro_rules! named_by_first_parameter {
    ($on:ident, $id:ty, $id_of:ident: $($others:ident),*) => {
        impl<$($others,)* Q, B> $on for Input<($id, $($others,)*), Q, B>
        where
            ($id, $($others,)*): PathParams,
        {
            fn $id_of(&self) -> &$id {
                &self.path.0
            }
        }
    };
    ($($on:ident($id:ident) -> $id_of:ident;)+) => {$(
        named_by_first_parameter!($on, $id, $id_of:);
        named_by_first_parameter!($on, $id, $id_of: X);
        named_by_first_parameter!($on, $id, $id_of: X, Y);
    )+};
}
named_by_first_parameter! {
    OnPlatform(PlatformId) -> platform_id;
    OnOrganization(OrganizationId) -> organization_id;
}

impl<G: Grant, I: OnPlatform + Sync> OpenScope<I> for PlatformScope<G> {
    const REQUIREMENT: Requirement = Requirement::Permission(G::PERMISSION);

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a I,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize(cx, uow, input.platform_id()))
    }
}

impl<G: Grant, I: OnOrganization + Sync> OpenScope<I> for MembershipScope<G> {
    const REQUIREMENT: Requirement = Requirement::Permission(G::PERMISSION);

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a I,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize_membership(cx, uow, input.organization_id()))
    }
}

impl<G: Grant, Q: Sync, B: Sync> OpenScope<Input<(JobId,), Q, B>> for JobScope<G> {
    const REQUIREMENT: Requirement = Requirement::Permission(G::PERMISSION);

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a Input<(JobId,), Q, B>,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize_job(cx, uow, &input.path.0))
    }
}

impl<G: Grant, I> OpenScope<I> for OrganizationScope<G> {
    const REQUIREMENT: Requirement = Requirement::Permission(G::PERMISSION);

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        _input: &'a I,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize_organization(cx, uow))
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
    SessionScope: Session, authorize_session;
    OperatorScope: Operator, authorize_operator;
    ServiceScope: Service, authorize_service;
}
