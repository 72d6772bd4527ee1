//! The port of taxes: the rate at which a customer is taxed.

use crate::billing::{Party, TaxRate};

/// Decides how the services for a customer are taxed.
///
/// [`TaxTable`](crate::billing::TaxTable) takes the rates from the configuration, and without rates taxes nothing. The
/// suite multiplies and rounds; see [`TaxRate::on`].
///
/// The method is called in a unit of work, which it would hold up. It must therefore return at once: an implementation
/// that asks a service has to know the response before.
pub trait TaxCalculator: Send + Sync + std::fmt::Debug {
    /// Returns the rate for new lines on the invoices of a customer with these details.
    fn rate(&self, customer: &Party) -> TaxRate;
}
