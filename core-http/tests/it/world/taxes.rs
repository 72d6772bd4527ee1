//! Taxes that a test can change, and the issuer of all invoices.

use std::sync::{Arc, Mutex};

use core_domain::billing::{Party, TaxRate, TaxTable};
use core_domain::port::TaxCalculator;
use serde_json::json;

/// Taxes that a test can change. At first nothing is taxed.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestTaxes(Arc<Mutex<TaxTable>>);

impl TestTaxes {
    /// Sets the rates of countries in basis points. The issuer is in Germany.
    pub(crate) fn set(&self, rates: &[(&str, u32)]) {
        let rates = rates
            .iter()
            .map(|(country, points)| ((*country).to_owned(), json!(points)));
        let rates = serde_json::Value::Object(rates.collect());
        let rates = serde_json::from_value(rates).unwrap();
        let home = issuer().country().cloned();
        *self.0.lock().unwrap() = TaxTable::new(home, &rates).unwrap();
    }
}

impl TaxCalculator for TestTaxes {
    fn rate(&self, customer: &Party) -> TaxRate {
        self.0.lock().unwrap().rate(customer)
    }
}

/// Returns the issuer of all invoices.
pub(crate) fn issuer() -> Party {
    let issuer = json!({ "name": "Platform GmbH", "email": "billing@platform.example", "taxId": "DE123456789",
        "address": { "line1": "Am Markt 1", "postalCode": "10115", "city": "Berlin", "country": "DE" } });
    serde_json::from_value(issuer).unwrap()
}
