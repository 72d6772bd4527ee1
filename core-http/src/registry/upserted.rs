//! Responses to writes that create a record only if it does not exist.

use core_domain::kernel::Record;
use core_domain::use_case::registry::Upserted;
use http::StatusCode;

use crate::kernel::{Output, Versioned};

/// Returns a response with the entity tag of the record. The status is 201 if the record was created, otherwise 200.
pub(super) fn upserted_response<R: Record, T>(upserted: &Upserted<R>, shown: T) -> Versioned<T> {
    let status = if upserted.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let output = Output::new(shown).status(status);
    output.etag(upserted.record.etag())
}
