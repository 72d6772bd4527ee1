//! Validation of account and zone ids.

use crate::envelope::Refusal;

pub(crate) const NO_ROUTE: Refusal = Refusal::new(
    404,
    7003,
    "Could not route the request, perhaps your object identifier is invalid?",
);
pub(crate) const FOREIGN: Refusal =
    Refusal::new(403, 9109, "Unauthorized to access requested resource");

/// Refuses a text that cannot be the id of an account or a zone.
pub(crate) fn check_id(id: &str) -> Result<(), Refusal> {
    let is_id = id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit());
    if is_id { Ok(()) } else { Err(NO_ROUTE) }
}
