//! API keys: made, changed, rotated and deleted by people, and looked up by their secret.

mod change;
mod create;
mod list;
mod lookup;

pub(super) use change::delete_all_of_user;
pub use change::{UpdateApiKey, delete, rotate, update};
pub use create::{IssuedApiKey, NewApiKey, create};
pub use list::{of_organization, own};
pub use lookup::{ApiKeyDetails, details_by_id, details_by_secret, note_use};

use crate::access::unowned;
use crate::iam::{ApiKey, ApiKeyQuery, MAX_REQUESTS_PER_MINUTE};
use crate::kernel::{Code, Error, Line, OrganizationId, PlatformId, Result, UserId};
use crate::port::UnitOfWork;
use crate::use_case::shared::remove_first;

/// Removes every key that acts for a platform that is gone.
pub(in crate::use_case::iam) async fn remove_of_platform(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<()> {
    let of_platform = ApiKeyQuery::OfPlatform(platform.clone());
    unowned::<ApiKey>(uow).remove_all(&of_platform).await?;
    Ok(())
}

/// Removes the keys that somebody has made for themselves in an organization they leave: whoever comes back gets none of them back.
pub(in crate::use_case::iam) async fn remove_of_member(
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
    user: &UserId,
) -> Result<()> {
    let of_member = ApiKeyQuery::OfMember(organization.clone(), user.clone());
    unowned::<ApiKey>(uow).remove_all(&of_member).await?;
    Ok(())
}

/// Removes the keys that somebody has made for themselves; tells how many.
pub(in crate::use_case::iam) async fn remove_of_user(
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<u64> {
    let of_user = ApiKeyQuery::OfUser(user.clone());
    unowned::<ApiKey>(uow).remove_all(&of_user).await
}

/// Removes at most `limit` of the keys that were revoked or expired long ago. Returns their number; 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_forgotten(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let (mut removed, mut rest) = (0, limit);
    for forgotten in ApiKeyQuery::all_forgotten(uow.now().await?) {
        if rest > 0 {
            let slice = remove_first::<ApiKey>(uow, &forgotten, rest).await?;
            rest = rest.saturating_sub(u32::try_from(slice).unwrap_or(rest));
            removed += slice;
        }
    }
    Ok(removed)
}

/// The name of a key, of 1 to 32 characters.
fn key_name(name: &Line<0, 255>) -> Result<Line<1, 32>> {
    Line::parse(name.as_str()).map_err(|_| {
        let message = "The name length is either too large or too small.";
        Error::refused(Code::InvalidNameLength, message)
    })
}

/// The limit of a key, which is for the owners of its organization to set, and for operators.
fn requests_per_minute(wanted: u32, is_owner: bool) -> Result<u32> {
    if !is_owner {
        return Err(Error::Forbidden);
    }
    if (1..=MAX_REQUESTS_PER_MINUTE).contains(&wanted) {
        return Ok(wanted);
    }
    let message = format!("must be between 1 and {MAX_REQUESTS_PER_MINUTE}");
    Err(Error::invalid("requestsPerMinute", "out_of_range", message))
}
