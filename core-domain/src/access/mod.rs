//! Access control: scopes, the only path from a use case to a record.
//!
//! A use case takes a scope as a parameter. Only a check (`authorize*`) creates a scope. The type of a scope says what
//! was checked. A scope reaches only the records that it was checked for: `scope.records::<Entity>(uow).get(&id)`
//! filters by the platform in its WHERE clause. Changes go through [`audited`], which writes the audit entry together
//! with the change and checks `If-Match`.
//!
//! | Scope | Created by | Covers |
//! |---|---|---|
//! | [`PlatformScope`] | [`authorize`] | the records of one platform |
//! | [`OrganizationScope`] | [`authorize_organization`] | lists of platforms, new platforms |
//! | [`MembershipScope`] | [`authorize_membership`] | one organization: members, roles, grants, invitations, API keys |
//! | [`MemberScope`] | [`authorize_member`] | one organization, for all of its members |
//! | [`RecipientScope`] | [`authorize_recipient`] | one invitation, for its recipient |
//! | [`NewOrganizationScope`] | [`authorize_new_organization`] | requests that create an organization for their caller |
//! | [`NewApiKeyScope`], [`ApiKeyScope`] | [`authorize_new_api_key`], [`authorize_api_key`] | API keys, by creator or owner |
//! | [`JobScope`] | [`authorize_job`] | one job |
//! | [`BillingScope`] | [`authorize_billing`] | the billing of one platform, also of a deleted one |
//! | [`CustomerScope`] | [`authorize_customer`] and its siblings | one customer of billing |
//! | [`PortalScope`] | [`authorize_portal`] | the billing of a platform, for the holder of a portal session |
//! | [`OperatorScope`] | [`authorize_operator`] | the whole installation, for operators |
//! | [`ServiceScope`], [`SessionScope`], [`PersonScope`], [`AccountScope`], [`SignedInScope`], [`PublicScope`] | their `authorize_*` | requests that depend only on the identity of the caller |
//! | [`SystemScope`] | this crate | the background work of the suite |

mod api_key;
pub mod audited;
mod billing;
mod installation;
mod job;
mod key;
mod limits;
mod membership;
mod organization;
mod platform;
pub(crate) mod records;
mod requirement;
mod signed_in;
mod step_up;
pub(crate) mod unaudited;

pub use api_key::{
    ApiKeyPurpose, ApiKeyScope, NewApiKeyScope, authorize_api_key, authorize_new_api_key,
};
pub use audited::AuditEvent;
pub use billing::{
    BillingScope, CustomerScope, PortalScope, authorize_billing, authorize_customer,
    authorize_invoice, authorize_portal, authorize_subscription,
};
pub use installation::{OperatorScope, SystemScope, authorize_operator};
pub use job::{JobScope, authorize_job};
pub use key::RecordKey;
pub(crate) use limits::{
    ensure_below, ensure_can_own_another, ensure_room, ensure_room_unless_operator,
};
pub use membership::{
    MemberScope, MembershipScope, OrganizationAccess, OrganizationRef, authorize_grant,
    authorize_invitation, authorize_member, authorize_membership,
};
pub(crate) use membership::{find_member, find_organization};
pub use organization::{
    NewOrganizationScope, OrganizationScope, Reach, RecipientScope, authorize_new_organization,
    authorize_new_organization_for, authorize_organization, authorize_recipient,
};
pub(crate) use platform::ensure_not_deleted;
pub use platform::{PlatformAccess, PlatformScope, PlatformWriter, authorize};
pub(crate) use records::unowned_records;
pub use records::{Covers, Records};
pub use requirement::Requirement;
pub use signed_in::{
    AccountScope, PersonScope, PublicScope, ServiceScope, SessionScope, SignedInScope,
    authorize_account, authorize_person, authorize_service, authorize_session, authorize_signed_in,
};
pub(crate) use step_up::EnrolledFactors;
pub use step_up::{ensure_fresh, missing_proof, proof_methods};
pub(crate) use unaudited::{
    Batches, all_unowned, api_key_context, remove_records, session_context,
};
