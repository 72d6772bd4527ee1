//! Replays of stored answers: the caller is let in for the present request first.
//!
//! The scope of the row is opened in the unit of the request. Then the handler runs as if for the first time, and what it writes
//! is undone: so whatever a use case asks of its caller besides the scope is asked again. A refusal of the caller is the answer.
//! Any other outcome is about what the first request has changed, and the stored answer is shown.

use std::sync::atomic::{AtomicBool, Ordering};

use core_domain::access::ensure_fresh;
use core_domain::kernel::{Code, Error, Result, StoreError};
use core_domain::port::UnitOfWork;
use http::StatusCode;

use super::context::Cx;
use super::idempotency::{Claim, FoundAnswer};
use super::status::status_of;

/// How far a write came, for whoever stores its refusal.
#[derive(Debug, Default)]
pub(super) struct Progress {
    was_let_in: AtomicBool,
    needs_proof: AtomicBool,
}

impl Progress {
    /// Begins again: the unit is run once more.
    pub(super) fn reset(&self) {
        self.was_let_in.store(false, Ordering::Relaxed);
        self.needs_proof.store(false, Ordering::Relaxed);
    }

    /// Notes that the caller was let in: a refusal that follows belongs to the request.
    pub(super) fn note_let_in(&self) {
        self.was_let_in.store(true, Ordering::Relaxed);
    }

    /// Notes whether the unit asked for a fresh proof.
    pub(super) fn note_unit(&self, uow: &mut dyn UnitOfWork) {
        let needs_proof = uow.effects().needs_fresh_proof();
        self.needs_proof.store(needs_proof, Ordering::Relaxed);
    }

    pub(super) fn was_let_in(&self) -> bool {
        self.was_let_in.load(Ordering::Relaxed)
    }

    pub(super) fn needs_proof(&self) -> bool {
        self.needs_proof.load(Ordering::Relaxed)
    }
}

/// Finds the stored answer of a request whose scope was opened. `INVALID_STATE` may be the request's own doing, as after the
/// deletion of a platform. So is what a row that ends access no longer finds.
///
/// # Errors
/// The refusal of the scope; `IDEMPOTENCY_KEY_REUSED`; `STEP_UP_REQUIRED` if the first request asked for a fresh proof.
pub(super) async fn find_stored<S>(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    scope: Result<S>,
) -> Result<(Option<FoundAnswer>, Result<S>)> {
    let is_shown = match &scope {
        Ok(_) | Err(Error::InvalidState { .. }) => true,
        Err(error) => {
            cx.ends_access && matches!(error.code(), Code::NotFound | Code::NoActiveOrganization)
        }
    };
    let claim = cx.claim.as_ref();
    let Some(claim) = claim.filter(|_| is_shown) else {
        return Ok((None, scope));
    };
    let found = claim.find(uow).await?;
    if found.as_ref().is_some_and(|found| found.needs_proof) {
        ensure_fresh(cx, uow).await?;
    }
    Ok((found, scope))
}

/// Tells whether the outcome of the repeated handler is the answer in place of the stored one.
pub(super) fn withholds(cx: &Cx, error: &Error, claim: &Claim) -> bool {
    match error {
        Error::Unauthorized | Error::Forbidden => true,
        // The unit is to be run again, or the store is down.
        Error::Store(StoreError::Conflict { .. } | StoreError::Stale { .. }) => false,
        Error::Store(_) => true,
        // Whoever lost sight of a thing is not shown a secret of it, or anything where the row calls that a refusal.
        Error::NotFound(_) => claim.is_secret() || status_of(cx.not_found) == StatusCode::FORBIDDEN,
        Error::Refused { code, .. } => match status_of(*code) {
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS => true,
            StatusCode::NOT_FOUND => claim.is_secret(),
            _ => false,
        },
        _ => false,
    }
}
