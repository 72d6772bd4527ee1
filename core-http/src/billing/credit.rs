//! The endpoint for credits.

use core_domain::kernel::Code;
use core_domain::use_case::billing::credit;
use http::StatusCode;

use crate::kernel::{Endpoint, call_with_body, post};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/operator/credits", "grantCredit")
            .summary("Grants a credit to a customer.")
            .description(
                "Credits pay for later invoices: those with a lower priority first, then those \
                 that expire first.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::NotFound, Code::CurrencyMismatch])
            .writes(call_with_body(credit::grant)),
    ]
}
