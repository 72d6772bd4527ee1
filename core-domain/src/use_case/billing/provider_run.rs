//! The outcome of a run that sends or compares many records with the payment provider.

use crate::port::PaymentsError;

/// The outcome of a run over many records. A record that fails does not stop the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderRun {
    /// The number of records that were sent or compared.
    pub done: usize,
    /// The records that failed.
    pub failed: Vec<FailedRecord>,
}

/// A record that could not be sent or compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedRecord {
    /// The id of the record.
    pub id: String,
    /// The error of the provider.
    pub error: String,
}

impl ProviderRun {
    /// Records that a request about a record has failed.
    pub(super) fn fail(&mut self, id: &str, error: &PaymentsError) {
        self.failed.push(FailedRecord {
            id: id.to_owned(),
            error: error.to_string(),
        });
    }
}
