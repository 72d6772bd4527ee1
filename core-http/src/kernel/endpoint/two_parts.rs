//! Handlers in two parts, for changes that need a call of another system. The first part runs in a unit of work and
//! stores what is to be done; the second one makes the call and stores the outcome in units of its own.
//!
//! With an idempotency key, the work that the first part leaves is stored together with the key. A repeated request is
//! refused while the second part runs. If the process has died or the outcome is unknown, a repeated request runs the
//! second part again, which must therefore be repeatable.

use std::sync::Arc;

use core_domain::kernel::{Error, Result};
use core_domain::port::{UnitOfWork, transact, transact_if};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::definition::{Endpoint, Handler, Shape};
use super::final_refusal;
use super::row::Row;
use super::scope::OpenScope;
use super::two_part_handler::{DetachedCx, First, FirstPart, FirstRun, SecondRun, TwoParts};
use crate::kernel::admission::idempotency::{Claim, Progress, StoredWork, find_stored};
use crate::kernel::answer::reply::{Answer, Reply};
use crate::kernel::request::context::Cx;
use crate::kernel::request::input::{Input, PathParams};
use crate::kernel::request::parse::ParsedRequest;

// A closure that passes through this function is inferred to be valid for every lifetime.
fn first_run<F>(run: F) -> Arc<FirstRun>
where
    F: for<'a> Fn(
            &'a Cx,
            &'a mut (dyn UnitOfWork + 'a),
            &'a ParsedRequest,
            &'a Progress,
        ) -> BoxFuture<'a, Result<First>>
        + Send
        + Sync
        + 'static,
{
    Arc::new(run)
}

impl Row {
    /// Completes the row with a handler in two parts. `first` runs in a unit of work like that of [`Row::writes`] and
    /// returns what is left to do. `second` runs after the commit, outside of a unit of work, and may call other
    /// systems. It goes on if the client disconnects, and can run again after a crash.
    #[must_use]
    pub fn writes_then<T, S, P, Q, B, W, A, H, G, F>(
        self,
        state: &Arc<T>,
        first: H,
        second: G,
    ) -> Endpoint
    where
        T: Send + Sync + 'static,
        S: OpenScope<Input<P, Q, B>>,
        P: PathParams,
        Q: Shape,
        B: Shape,
        W: Serialize + DeserializeOwned + Send + 'static,
        A: Answer,
        H: for<'a> FirstPart<'a, T, S, P, Q, B, W>,
        G: Fn(DetachedCx, Arc<T>, W) -> F + Send + Sync + 'static,
        F: Future<Output = Result<A>> + Send + 'static,
    {
        let (first, own) = (Arc::new(first), Arc::clone(state));
        let first = first_run(move |cx, uow, parsed, progress| {
            let (first, own) = (Arc::clone(&first), Arc::clone(&own));
            Box::pin(async move {
                let input: Input<P, Q, B> = parsed.input()?;
                let scope = match S::open(cx, uow, &input).await {
                    // The unit of work is aborted. A further read would fail with an error that does not say
                    // whether to run it again.
                    Err(error @ Error::Store(_)) => return Err(error),
                    scope => scope,
                };
                let claim = progress.claim();
                if let Some(claim) = claim
                    && let Some(work) = claim.find_work(uow).await?
                {
                    scope?;
                    return Ok(First::Resumed(work));
                }
                let (stored, scope) = find_stored(cx, uow, claim, scope).await?;
                if let Some(stored) = stored {
                    return Ok(First::Replay(stored.reply));
                }
                let scope = scope?;
                progress.note_let_in();
                let work = first.call(cx, own, scope, uow, input).await?;
                Ok(First::New(to_json(&work)?))
            })
        });
        let (second, own) = (Arc::new(second), Arc::clone(state));
        let second: Arc<SecondRun> = Arc::new(move |cx, work, success| {
            let (second, own) = (Arc::clone(&second), Arc::clone(&own));
            Box::pin(async move {
                let work = serde_json::from_value(work);
                let work = work.map_err(|error| broken_work(&error))?;
                second(cx, own, work).await?.reply(success)
            })
        });
        let handler = Handler::TwoParts(TwoParts { first, second });
        Endpoint::new::<P, Q, B, A>(self, S::REQUIREMENT, handler)
    }
}

fn to_json(work: &impl Serialize) -> Result<Value> {
    serde_json::to_value(work).map_err(|error| broken_work(&error))
}

fn broken_work(error: &serde_json::Error) -> Error {
    Error::Internal(format!("the work of a request cannot be stored: {error}"))
}

/// Runs both parts of a handler.
pub(super) async fn run(
    endpoint: &Endpoint,
    cx: &Cx,
    parsed: &ParsedRequest,
    parts: &TwoParts,
    progress: &Progress,
) -> Result<Reply> {
    let first = run_first(cx, parsed, parts, progress).await;
    let first = first.map_err(|error| endpoint.row.replace_error(error));
    if let (Err(error), Some(claim)) = (&first, progress.claim())
        && progress.was_authorized()
        && final_refusal::is_final(error)
    {
        final_refusal::store(endpoint, cx, claim, error, false).await?;
    }
    let work = match first? {
        First::Replay(reply) => return Ok(reply),
        First::New(work) | First::Resumed(work) => work,
    };
    let detached = DetachedCx {
        domain: cx.domain.without_conditions(),
        app: Arc::clone(&cx.app),
    };
    let second = (parts.second)(detached, work, cx.success);
    let outcome = match tokio::spawn(second).await {
        Ok(outcome) => outcome.map_err(|error| endpoint.row.replace_error(error)),
        Err(_) => Err(Error::Internal("a handler panicked".to_owned())),
    };
    if let Some(claim) = progress.claim() {
        let left = &left_by(endpoint, cx, claim, &outcome)?;
        let stored = transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(claim.finish_work(uow, left))
        });
        stored.await?;
    }
    outcome
}

async fn run_first(
    cx: &Cx,
    parsed: &ParsedRequest,
    parts: &TwoParts,
    progress: &Progress,
) -> Result<First> {
    transact_if(cx.app.store.as_ref(), First::is_new, |uow, _| {
        progress.reset();
        Box::pin(async move {
            let first = (parts.first)(cx, uow, parsed, progress).await?;
            if let (First::New(work), Some(claim)) = (&first, progress.claim()) {
                claim.store_work(uow, work).await?;
            }
            Ok(first)
        })
    })
    .await
}

/// Returns what is stored in place of the work: the response or the final refusal of the second part, or that it can be
/// repeated at once.
fn left_by(
    endpoint: &Endpoint,
    cx: &Cx,
    claim: &Claim,
    outcome: &Result<Reply>,
) -> Result<StoredWork> {
    Ok(match outcome {
        Ok(reply) => StoredWork::Answered(claim.record(reply, false)?),
        Err(error) if final_refusal::is_final(error) => {
            let refusal = final_refusal::stored_form(endpoint, cx, claim, error, false)?;
            StoredWork::Answered(refusal)
        }
        // A failure here, such as of the last read, does not undo what the second part has done before.
        Err(Error::Store(_) | Error::Internal(_)) => StoredWork::Interrupted,
        Err(error) if error.is_outcome_unknown() => StoredWork::Interrupted,
        Err(_) => StoredWork::Forgotten,
    })
}
