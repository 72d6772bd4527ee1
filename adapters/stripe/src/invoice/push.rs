//! Creating an open invoice: a draft, its lines, and its end as a draft.

use std::collections::BTreeMap;
use std::time::Duration;

use core_domain::billing::InvoiceStatus;
use core_domain::port::{ProviderInvoice, PushedInvoice, PushedLine};
use serde::Deserialize;

use super::look_up::{find_by_id, find_ours};
use super::{INVOICE_ID, Invoice, LINE_ID};
use crate::call::Call;
use crate::currency::{lines_to_stripe, to_stripe};
use crate::customer::AnyObject;
use crate::error::CallError;
use crate::session::{Lookup, Session};

/// Maximum number of lines that one request adds.
const MAX_ADDED_LINES: usize = 100;

/// The age from which an invoice is looked up before it is pushed, see [`PushedInvoice::created_at`]. No database is restored from
/// a backup in less time.
const MAX_AGE_OF_NEW: Duration = Duration::from_mins(5);

/// A line in Stripe's minor units.
struct Line<'a> {
    line: &'a PushedLine,
    amount: i64,
}

/// The metadata of a line at Stripe.
#[derive(Deserialize)]
struct StoredLine {
    #[serde(default)]
    metadata: BTreeMap<String, String>,
}

/// Creates and finalizes an invoice. An interrupted call can be repeated and continues.
pub(crate) async fn push(
    session: &Session<'_>,
    invoice: &PushedInvoice,
) -> Result<ProviderInvoice, CallError> {
    let impossible = |error: crate::currency::AmountError| CallError::Impossible(error.to_string());
    let due = to_stripe(invoice.amount_due).map_err(impossible)?;
    let amounts: Vec<_> = invoice.lines.iter().map(|line| line.amount).collect();
    let amounts = lines_to_stripe(&amounts, invoice.amount_due.currency()).map_err(impossible)?;
    let pairs = invoice.lines.iter().zip(amounts);
    let lines: Vec<_> = pairs.map(|(line, amount)| Line { line, amount }).collect();
    let now = session.client.clock().now();
    let is_new = now.since(invoice.created_at) < MAX_AGE_OF_NEW;
    let known = match is_new {
        true => None,
        false => find(session, invoice).await?,
    };
    let draft = match known {
        Some(known) if known.status()? != InvoiceStatus::Draft => {
            return ensure_due(known, due)?.into_provider();
        }
        Some(known) => complete(session, invoice, known, &lines).await?,
        None => {
            let draft = create(session, invoice).await?;
            add_lines(session, invoice, draft, &lines, "").await?
        }
    };
    let draft = match ensure_due(draft.clone(), due) {
        Ok(draft) => draft,
        Err(error) => {
            discard(session, &draft.id).await;
            return Err(error);
        }
    };
    let open = finalize(session, invoice, &draft.id).await?;
    match ensure_due(open.clone(), due) {
        Ok(open) => open.into_provider(),
        Err(error) => {
            void(session, &open.id).await;
            Err(error)
        }
    }
}

async fn find(
    session: &Session<'_>,
    invoice: &PushedInvoice,
) -> Result<Option<Invoice>, CallError> {
    find_ours(session, &invoice.id, &invoice.customer, invoice.created_at).await
}

/// Refuses an invoice with another amount due than ours.
fn ensure_due(invoice: Invoice, due: i64) -> Result<Invoice, CallError> {
    if invoice.amount_due == due {
        return Ok(invoice);
    }
    Err(CallError::Impossible(format!(
        "the invoice {} has the amount due {} instead of {due}",
        invoice.id, invoice.amount_due
    )))
}

fn key(invoice: &PushedInvoice, step: &str) -> String {
    format!("{}:{step}", invoice.id.as_str())
}

async fn create(session: &Session<'_>, invoice: &PushedInvoice) -> Result<Invoice, CallError> {
    let create = Call::post("invoice.create", &["invoices"])
        .param("customer", &invoice.customer)
        .param("currency", invoice.amount_due.currency())
        .param("auto_advance", false)
        .param("collection_method", "charge_automatically")
        .param("pending_invoice_items_behavior", "exclude")
        .param(&format!("metadata[{INVOICE_ID}]"), invoice.id.as_str())
        .optional("number", invoice.number.as_deref())
        .key(key(invoice, "create"));
    let created = session.change(&create, || Box::pin(find(session, invoice)));
    created.await
}

/// Adds lines to a draft, in as many requests as needed. `attempt` makes the keys differ from those of other lines.
async fn add_lines(
    session: &Session<'_>,
    invoice: &PushedInvoice,
    draft: Invoice,
    lines: &[Line<'_>],
    attempt: &str,
) -> Result<Invoice, CallError> {
    let mut draft = draft;
    for (number, chunk) in lines.chunks(MAX_ADDED_LINES).enumerate() {
        let mut add = Call::post("invoice.add_lines", &["invoices", &draft.id, "add_lines"])
            .key(key(invoice, &format!("lines:{attempt}{number}")));
        for (index, Line { line, amount }) in chunk.iter().enumerate() {
            add = add
                .param(&format!("lines[{index}][amount]"), amount)
                .param(&format!("lines[{index}][description]"), &line.description)
                .param(&format!("lines[{index}][metadata][{LINE_ID}]"), &line.id);
        }
        let first = chunk.first().map(|own| own.line.id.as_str());
        let id = draft.id.as_str();
        let added = session.change(&add, || Box::pin(find_with_line(session, id, first)));
        draft = added.await?;
    }
    Ok(draft)
}

/// Finds a draft if it has a line. All lines of a request are added together.
async fn find_with_line(
    session: &Session<'_>,
    draft: &str,
    line: Option<&str>,
) -> Result<Option<Invoice>, CallError> {
    let stored = stored_lines(session, draft).await?;
    let is_added = line.is_some_and(|line| stored.iter().any(|own| own == line));
    if !is_added {
        return Ok(None);
    }
    find_by_id(session, draft).await
}

/// Returns our ids of the lines that a draft has.
async fn stored_lines(session: &Session<'_>, draft: &str) -> Result<Vec<String>, CallError> {
    let list = Call::get("invoice.lines", &["invoices", draft, "lines"]);
    let mut lines: Vec<StoredLine> = session.all(&list).await?;
    let ids = lines
        .iter_mut()
        .filter_map(|own| own.metadata.remove(LINE_ID));
    Ok(ids.collect())
}

/// Adds the lines that a draft of an interrupted call does not have yet.
async fn complete(
    session: &Session<'_>,
    invoice: &PushedInvoice,
    draft: Invoice,
    lines: &[Line<'_>],
) -> Result<Invoice, CallError> {
    let stored = stored_lines(session, &draft.id).await?;
    let missing = lines.iter().filter(|own| !stored.contains(&own.line.id));
    let missing: Vec<_> = missing
        .map(|own| Line {
            line: own.line,
            amount: own.amount,
        })
        .collect();
    let attempt = format!("after:{}:", stored.len());
    add_lines(session, invoice, draft, &missing, &attempt).await
}

async fn finalize(
    session: &Session<'_>,
    invoice: &PushedInvoice,
    id: &str,
) -> Result<Invoice, CallError> {
    let finalize = Call::post("invoice.finalize", &["invoices", id, "finalize"])
        .param("auto_advance", false)
        .key(key(invoice, "finalize"));
    let find_final = || -> Lookup<'_, Invoice> {
        Box::pin(async move {
            let found = find_by_id(session, id).await?;
            Ok(found.filter(|own| own.status.as_deref() != Some("draft")))
        })
    };
    match session.change(&finalize, find_final).await {
        // An interrupted call has finalized it.
        Err(error) if error.is_state() => find_final().await?.ok_or(error),
        finalized => finalized,
    }
}

/// Deletes a draft with a wrong amount. One that remains is never charged.
async fn discard(session: &Session<'_>, id: &str) {
    let delete = Call::delete("invoice.delete", &["invoices", id]);
    if let Err(error) = session.fetch::<AnyObject>(&delete).await {
        tracing::warn!(invoice = id, %error, "failed to delete a draft with a wrong amount");
    }
}

/// Cancels an open invoice with a wrong amount.
async fn void(session: &Session<'_>, id: &str) {
    let void = Call::post("invoice.void", &["invoices", id, "void"]);
    if let Err(error) = session.fetch::<AnyObject>(&void).await {
        tracing::error!(invoice = id, %error, "failed to cancel an invoice with a wrong amount");
    }
}
