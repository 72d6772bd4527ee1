//! Shared parts of the organization routes: reads with two methods, and the organization that a request names.

use core_domain::access::OrganizationRef;
use core_domain::kernel::{OrganizationId, Slug};

use crate::kernel::{Endpoint, ErrorStyle, Input, OnOrganization, Row, get, post};

/// Returns the endpoints of a read for `GET` and `POST`. Each has an operation id of its own.
pub(super) fn get_and_post(
    path: &'static str,
    [by_get, by_post]: [&'static str; 2],
    row: impl Fn(Row) -> Endpoint,
) -> [Endpoint; 2] {
    let row = |start: Row| row(start.errors(ErrorStyle::TopLevelCode));
    [row(get(path, by_get)), row(post(path, by_post))]
}

/// A query or body that can name an organization. Without a name, the request is about the active organization.
pub(super) trait NamesOrganization {
    /// Returns the id of the organization, if the request contains one.
    fn id(&self) -> Option<&OrganizationId>;

    /// Returns the slug of the organization, if the request contains one. The id takes precedence.
    fn slug(&self) -> Option<&Slug> {
        None
    }

    /// Returns the organization that the request is about.
    fn organization_ref(&self) -> OrganizationRef<'_> {
        match (self.id(), self.slug()) {
            (None, Some(slug)) => OrganizationRef::Slug(slug),
            (id, _) => OrganizationRef::id_or_active(id),
        }
    }
}

impl<Q: NamesOrganization> OnOrganization for Input<(), Q> {
    fn organization(&self) -> OrganizationRef<'_> {
        self.query.organization_ref()
    }
}

impl<B: NamesOrganization> OnOrganization for Input<(), (), B> {
    fn organization(&self) -> OrganizationRef<'_> {
        self.body.organization_ref()
    }
}

/// A request without parameters is about the active organization.
impl OnOrganization for Input {
    fn organization(&self) -> OrganizationRef<'_> {
        OrganizationRef::Active
    }
}

/// Implements [`NamesOrganization`] for queries and bodies with an optional field `organization_id`.
macro_rules! names_organization {
    ($($shape:ty),+) => {$(
        impl $crate::iam::auth_organization::common::NamesOrganization for $shape {
            fn id(&self) -> Option<&core_domain::kernel::OrganizationId> {
                self.organization_id.as_ref()
            }
        }
    )+};
}
pub(super) use names_organization;
