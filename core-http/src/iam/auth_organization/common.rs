//! What the routes of organizations share: reads by two methods, and the organization that a request means.

use core_domain::access::{
    PersonScope, Requirement, SessionScope, authorize_person, authorize_session,
};
use core_domain::kernel::{Code, Context, OrganizationId, Result, Slug};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::organization::{
    FoundOrganization, OrganizationName, OwnMembership, find_own,
};

use futures_util::future::BoxFuture;

use crate::kernel::{Endpoint, ErrorStyle, Input, OpenScope, Row, get, post};

/// A read under both methods: the operation of `POST` has a name of its own.
pub(super) fn both(
    path: &'static str,
    [by_get, by_post]: [&'static str; 2],
    row: impl Fn(Row) -> Endpoint,
) -> [Endpoint; 2] {
    let row = |start: Row| row(start.errors(ErrorStyle::TopLevelCode));
    [row(get(path, by_get)), row(post(path, by_post))]
}

/// A person known by a session, in an organization of theirs.
pub(super) struct Own {
    pub(super) person: PersonScope,
    pub(super) membership: OwnMembership,
}

/// The body of a change to one of the caller's organizations.
pub(super) trait OnOwnOrganization {
    /// The codes of the refusals: no organization is active, it is not the caller's.
    const REFUSALS: [Code; 2];

    /// The organization that the request names; the active one if `None`.
    fn organization_id(&self) -> Option<&OrganizationId>;
}

/// Opened as a scope, so that a former member is refused before a stored answer is looked for.
impl<B: OnOwnOrganization + Sync> OpenScope<Input<(), (), B>> for Own {
    const REQUIREMENT: Requirement = Requirement::Session;

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a Input<(), (), B>,
    ) -> BoxFuture<'a, Result<Self>> {
        let id = input.body.organization_id().cloned();
        Box::pin(async move {
            let session = authorize_session(cx)?;
            own(cx, &session, uow, id, B::REFUSALS).await
        })
    }
}

/// Which organization a request names, if any.
pub(super) fn named(id: Option<OrganizationId>, slug: Option<Slug>) -> Option<OrganizationName> {
    let by_slug = slug.map(OrganizationName::Slug);
    id.map(OrganizationName::Id).or(by_slug)
}

/// The caller's organization that is meant, or what stands in its way.
pub(super) async fn find(
    cx: &Context,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
    name: Option<OrganizationName>,
) -> Result<(PersonScope, FoundOrganization)> {
    let person = authorize_person(cx)?;
    let found = find_own(&person, session, uow, name).await?;
    Ok((person, found))
}

/// The caller's organization of that id, or the active one; or the refusals of the route: none is active, it is not theirs.
pub(super) async fn own(
    cx: &Context,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
    id: Option<OrganizationId>,
    refusals: [Code; 2],
) -> Result<Own> {
    own_named(cx, session, uow, named(id, None), refusals).await
}

/// As [`own`], by id or slug.
pub(super) async fn own_named(
    cx: &Context,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
    name: Option<OrganizationName>,
    [none_active, not_a_member]: [Code; 2],
) -> Result<Own> {
    let (person, found) = find(cx, session, uow, name).await?;
    Ok(Own {
        person,
        membership: found.own(none_active, not_a_member)?,
    })
}
