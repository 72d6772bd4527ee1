//! Answers of writes that make a record only when there is none.

use core_domain::kernel::Record;
use core_domain::use_case::registry::Upserted;
use http::StatusCode;

use crate::kernel::{Output, Versioned};

/// What is shown of a record, with its entity tag: 201 when it is new, otherwise 200.
pub(super) fn answer<R: Record, T>(upserted: &Upserted<R>, shown: T) -> Versioned<T> {
    let status = if upserted.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let output = Output::new(shown).status(status);
    output.etag(upserted.record.etag())
}
