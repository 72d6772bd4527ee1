//! What the routes of organizations share: reads by two methods, and the organization that a request means.

use core_domain::access::{PersonScope, SessionScope, authorize_person};
use core_domain::kernel::{Code, OrganizationId, Result, Slug};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::organization::{
    FoundOrganization, OrganizationName, OwnMembership, find_own,
};

use crate::kernel::{Cx, Endpoint, ErrorStyle, Row, get, post};

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

/// Which organization a request names, if any.
pub(super) fn named(id: Option<OrganizationId>, slug: Option<Slug>) -> Option<OrganizationName> {
    let by_slug = slug.map(OrganizationName::Slug);
    id.map(OrganizationName::Id).or(by_slug)
}

/// The caller's organization that is meant, or what stands in its way.
pub(super) async fn find(
    cx: &Cx,
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
    cx: &Cx,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
    id: Option<OrganizationId>,
    refusals: [Code; 2],
) -> Result<Own> {
    own_named(cx, session, uow, named(id, None), refusals).await
}

/// As [`own`], by id or slug.
pub(super) async fn own_named(
    cx: &Cx,
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
