//! Organizations as better-auth's clients know them. Reads are `GET`, as the clients send them, and `POST` works as well.

mod invitations;
mod members;
mod organizations;
mod views;

use std::sync::Arc;

use core_domain::access::{PersonScope, SessionScope, authorize_person};
use core_domain::kernel::Code;
use core_domain::kernel::{OrganizationId, Result, Slug};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::organization::{
    FoundOrganization, OrganizationName, OwnMembership, find_own,
};

use super::config::Iam;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Row, get, post};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let parts = [
        organizations::rows(iam),
        members::rows(),
        invitations::rows(iam),
    ];
    parts.into_iter().flatten().collect()
}

/// A read under both methods: the operation of `POST` has a name of its own.
fn both(
    path: &'static str,
    [by_get, by_post]: [&'static str; 2],
    row: impl Fn(Row) -> Endpoint,
) -> [Endpoint; 2] {
    let row = |start: Row| row(start.errors(ErrorStyle::TopLevelCode));
    [row(get(path, by_get)), row(post(path, by_post))]
}

/// A person known by a session, in an organization of theirs.
struct Own {
    person: PersonScope,
    membership: OwnMembership,
}

/// Which organization a request names, if any.
fn named(id: Option<OrganizationId>, slug: Option<Slug>) -> Option<OrganizationName> {
    let by_slug = slug.map(OrganizationName::Slug);
    id.map(OrganizationName::Id).or(by_slug)
}

/// The caller's organization that is meant, or what stands in its way.
async fn find(
    cx: &Cx,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
    name: Option<OrganizationName>,
) -> Result<(PersonScope, FoundOrganization)> {
    let person = authorize_person(cx)?;
    let found = find_own(&person, session, uow, name).await?;
    Ok((person, found))
}

/// The caller's organization that is meant, or the refusals of the route: none is active, it is not theirs.
async fn own(
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
