//! What a key may.

use super::super::{Member, Organization, membership};
use super::ApiKey;
use crate::kernel::{Membership, PermissionPattern, PermissionSet, Role, Timestamp};

/// What a key of an organization's own may: its scopes, or everything.
#[must_use]
pub fn organization_key_patterns(key: &ApiKey) -> Vec<PermissionPattern> {
    let everything = || PermissionPattern::parse("*:*").into_iter().collect();
    key.scopes.clone().unwrap_or_else(everything)
}

/// What a key is to the rest of the suite at this instant: the member it belongs to, narrowed to its scopes, or by itself
/// the organization's. `None` when it may not act: its owner is no member any more, or the organization has another
/// platform now.
///
/// A key operates nothing, even in the organization that operates the installation.
#[must_use]
pub fn key_membership(
    key: &ApiKey,
    organization: &Organization,
    member: Option<&Member>,
    now: Timestamp,
) -> Option<Membership> {
    let of_key = key.organization_id.as_ref() == Some(&organization.id);
    if !of_key || key.platform_id.is_none() || organization.platform_id != key.platform_id {
        return None;
    }
    let acting = if key.user_id.is_some() {
        let own = membership(organization, member?, now);
        let permissions = match &key.scopes {
            Some(scopes) => {
                let scopes = scopes.iter().map(PermissionPattern::as_str);
                own.permissions.within(scopes)
            }
            None => own.permissions,
        };
        Membership { permissions, ..own }
    } else {
        let patterns = organization_key_patterns(key);
        let patterns = patterns.iter().map(PermissionPattern::as_str);
        Membership {
            organization_id: organization.id.clone(),
            platform_id: organization.platform_id.clone(),
            // A name has to be given; the least of them. What it may are its scopes.
            role: Role::MEMBER.into(),
            permissions: PermissionSet::new(patterns),
            operates: false,
        }
    };
    Some(Membership {
        operates: false,
        ..acting
    })
}
