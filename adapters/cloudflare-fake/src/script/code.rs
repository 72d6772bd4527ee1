//! Codes and refusals of all of the scripts' endpoints.

use crate::envelope::Refusal;

pub(super) const NOT_FOUND: Refusal =
    Refusal::new(404, 10007, "This Worker does not exist on your account.");
/// The code of a rejected form, script or setting.
pub(super) const INVALID: u32 = 10021;
