//! Codes and refusals of all of the endpoints of Pages.

use crate::envelope::Refusal;

/// The code of a refusal for which the contract has no code.
pub(super) const INVALID: u32 = 8_000_001;
pub(super) const NOT_FOUND: Refusal = Refusal::new(
    404,
    8_000_007,
    "Project not found. The specified project name does not match any of your existing projects.",
);
