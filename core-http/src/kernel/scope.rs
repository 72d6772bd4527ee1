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

impl<Q, B> OnPlatform for Input<(PlatformId,), Q, B> {
    fn platform_id(&self) -> &PlatformId {
        &self.path.0
    }
}

impl<X, Q, B> OnPlatform for Input<(PlatformId, X), Q, B>
where
    (PlatformId, X): PathParams,
{
    fn platform_id(&self) -> &PlatformId {
        &self.path.0
    }
}

impl<X, Y, Q, B> OnPlatform for Input<(PlatformId, X, Y), Q, B>
where
    (PlatformId, X, Y): PathParams,
{
    fn platform_id(&self) -> &PlatformId {
        &self.path.0
    }
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

/// A request that names an organization: in the first parameter of its path, or wherever an implementation says.
pub trait OnOrganization {
    /// The organization.
    fn organization_id(&self) -> &OrganizationId;
}

impl<Q, B> OnOrganization for Input<(OrganizationId,), Q, B> {
    fn organization_id(&self) -> &OrganizationId {
        &self.path.0
    }
}

impl<X, Q, B> OnOrganization for Input<(OrganizationId, X), Q, B>
where
    (OrganizationId, X): PathParams,
{
    fn organization_id(&self) -> &OrganizationId {
        &self.path.0
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
