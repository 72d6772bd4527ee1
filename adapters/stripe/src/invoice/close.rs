//! Ending an invoice without a charge.

use core_domain::port::{Close, OpKey};

use super::Invoice;
use super::look_up::find_by_id;
use crate::call::Call;
use crate::customer::AnyObject;
use crate::error::CallError;
use crate::session::{Lookup, Session};

/// Ends an open invoice. Does nothing if it has ended in this way.
pub(crate) async fn close(
    session: &Session<'_>,
    key: &OpKey,
    id: &str,
    how: Close,
) -> Result<(), CallError> {
    let (call, status) = match how {
        Close::Void => (
            Call::post("invoice.void", &["invoices", id, "void"]),
            "void",
        ),
        Close::Uncollectible => (
            Call::post(
                "invoice.mark_uncollectible",
                &["invoices", id, "mark_uncollectible"],
            ),
            "uncollectible",
        ),
        Close::PaidOutOfBand => (
            Call::post("invoice.pay", &["invoices", id, "pay"]).param("paid_out_of_band", true),
            "paid",
        ),
    };
    let call = call.key(key.as_str());
    let is_closed = |own: &Invoice| own.status.as_deref() == Some(status);
    let find_closed = || -> Lookup<'_, Invoice> {
        Box::pin(async move { Ok(find_by_id(session, id).await?.filter(is_closed)) })
    };
    match session.change(&call, find_closed).await {
        Err(error) if error.is_state() => match find_by_id(session, id).await? {
            Some(own) if is_closed(&own) => Ok(()),
            Some(own) if how == Close::Void && own.status.as_deref() == Some("draft") => {
                let delete = Call::delete("invoice.delete", &["invoices", id]);
                session.fetch::<AnyObject>(&delete).await.map(drop)
            }
            _ => Err(error),
        },
        closed => closed.map(drop),
    }
}
