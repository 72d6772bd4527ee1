//! What the routes of organizations share: reads by two methods, and the organization that a request is about.

use core_domain::access::OrganizationRef;
use core_domain::kernel::{OrganizationId, Slug};

use crate::kernel::{Endpoint, ErrorStyle, Input, OnOrganization, Row, get, post};

/// A read under both methods: the operation of `POST` has a name of its own.
pub(super) fn both(
    path: &'static str,
    [by_get, by_post]: [&'static str; 2],
    row: impl Fn(Row) -> Endpoint,
) -> [Endpoint; 2] {
    let row = |start: Row| row(start.errors(ErrorStyle::TopLevelCode));
    [row(get(path, by_get)), row(post(path, by_post))]
}

/// A query or body that may name an organization. One that names none is about the active organization.
pub(super) trait NamesOrganization {
    /// The id of the organization.
    fn id(&self) -> Option<&OrganizationId>;

    /// The slug of the organization; the id wins over it.
    fn slug(&self) -> Option<&Slug> {
        None
    }

    /// The organization.
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

/// A request that can name no organization is about the active one.
impl OnOrganization for Input {
    fn organization(&self) -> OrganizationRef<'_> {
        OrganizationRef::Active
    }
}

/// Queries and bodies with the field `organization_id`.
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
