//! Codes and refusals of all of the endpoints of Pages.

use crate::envelope::Refusal;

/// Of a request that is refused for a reason the contract gives no code for.
pub(super) const INVALID: u32 = 8_000_001;
pub(super) const NOT_FOUND: Refusal = Refusal::new(
    404,
    8_000_007,
    "Project not found. The specified project name does not match any of your existing projects.",
);
