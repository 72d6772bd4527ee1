//! Refusals that are stored under the idempotency key of a request.

use core_domain::kernel::{Code, Error, Result, StoreError};
use core_domain::port::transact;
use http::StatusCode;

use super::definition::Endpoint;
use crate::kernel::admission::idempotency::{Claim, StoredAnswer};
use crate::kernel::answer::envelope::{error_body, status_of};
use crate::kernel::answer::reply::{Content, reply};
use crate::kernel::request::context::Cx;

/// Returns whether a refusal is final: it depends on stored records, so a repeated request would be refused again. Only
/// final refusals are stored under idempotency keys. Invalid requests, reached limits and temporary failures are not
/// final.
pub(super) fn is_final(error: &Error) -> bool {
    match error {
        Error::NotFound(_)
        | Error::InvalidState { .. }
        | Error::VersionConflict
        | Error::Store(StoreError::Conflict { .. }) => true,
        Error::Refused { code, .. } => {
            let passes = matches!(
                code,
                Code::LimitReached
                    | Code::IdempotencyInProgress
                    | Code::IdempotencyKeyReused
                    | Code::OperationInProgress
            );
            !passes
                && matches!(
                    status_of(*code),
                    StatusCode::PAYMENT_REQUIRED
                        | StatusCode::NOT_FOUND
                        | StatusCode::CONFLICT
                        | StatusCode::PRECONDITION_FAILED
                        | StatusCode::UNPROCESSABLE_ENTITY
                )
        }
        _ => false,
    }
}

/// Returns a refusal in the form in which it is stored.
pub(super) fn stored_form(
    endpoint: &Endpoint,
    cx: &Cx,
    claim: &Claim,
    error: &Error,
    needs_proof: bool,
) -> Result<StoredAnswer> {
    let body = error_body(error, &cx.request.request_id, endpoint.row.style);
    let refusal = reply(status_of(error.code()), Content::Json(body));
    claim.record(&refusal, needs_proof)
}

/// Stores a refusal as the response for an idempotency key.
pub(super) async fn store(
    endpoint: &Endpoint,
    cx: &Cx,
    claim: &Claim,
    error: &Error,
    needs_proof: bool,
) -> Result<()> {
    let refusal = &stored_form(endpoint, cx, claim, error, needs_proof)?;
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(claim.store_refusal(uow, refusal.clone()))
    })
    .await
}
