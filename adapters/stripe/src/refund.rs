//! Refunds.

use core_domain::billing::Currency;
use core_domain::port::ProviderRefund;
use serde::Deserialize;

use crate::call::Call;
use crate::currency::from_stripe;
use crate::error::CallError;
use crate::session::Session;

/// The first characters of the id of a refund.
const PREFIX: &str = "re_";

#[derive(Deserialize)]
struct Refund {
    id: String,
    amount: i64,
    currency: String,
    status: Option<String>,
}

impl Refund {
    fn into_provider(self) -> Result<ProviderRefund, CallError> {
        let id = self.id.clone();
        let why = || CallError::Impossible(format!("the amount of the refund {id} is not valid"));
        let currency = Currency::parse(&self.currency).ok();
        let currency = currency.ok_or_else(why)?;
        Ok(ProviderRefund {
            amount: from_stripe(self.amount, currency).ok_or_else(why)?,
            id: self.id,
            currency,
            is_complete: self.status.as_deref() == Some("succeeded"),
        })
    }
}

/// Returns the refunds of a charge, newest first, or the refund with this id.
pub(crate) async fn list(
    session: &Session<'_>,
    id: &str,
) -> Result<Vec<ProviderRefund>, CallError> {
    let refunds: Vec<Refund> = if id.starts_with(PREFIX) {
        let get = Call::get("refund.find", &["refunds", id]);
        session.find(&get).await?.into_iter().collect()
    } else {
        let list = Call::get("refund.list", &["refunds"]).param("charge", id);
        session.all(&list).await?
    };
    refunds.into_iter().map(Refund::into_provider).collect()
}
