//! The effects of the commits of one request. A service reports them to a gateway in another process with the response.

use std::cell::RefCell;

use core_domain::kernel::{Effects, Notice, NoticeSet};
use http::HeaderValue;

use crate::kernel::Body;
use crate::kernel::request::header_names;

/// Maximum length of the header, in bytes. Servers and clients accept at least 8 KiB of headers.
const MAX_HEADER_BYTES: usize = 2_048;

tokio::task_local! {
    /// The notices of the request that this task is handling.
    static COMMITTED: RefCell<NoticeSet>;
}

/// Records the effects of a commit for the response to the current request. Call it from
/// [`CommitListener::on_committed`](core_domain::port::CommitListener::on_committed). It has no effect outside of a
/// request, or if the request did not come from a gateway in another process.
///
/// That gateway gets the effects before its client gets the response. The next request of the client is therefore not
/// answered from a cache that does not know the change, even if notices of other processes are late or missing.
pub fn record_effects(effects: &Effects) {
    // An error means that there is no such request.
    let _ = COMMITTED.try_with(|notices| {
        let concerning = effects.iter().filter(|e| e.concerns_other_processes());
        let mut notices = notices.borrow_mut();
        concerning.for_each(|effect| notices.insert(Notice::Effect(effect.clone())));
    });
}

/// Adds the effects that are recorded until the response is there to its headers.
pub(crate) async fn with_effects(
    answered: impl Future<Output = http::Response<Body>>,
) -> http::Response<Body> {
    let answered = async {
        let response = answered.await;
        (response, COMMITTED.with(RefCell::take))
    };
    let (mut response, notices) = COMMITTED.scope(RefCell::default(), answered).await;
    if !notices.is_empty()
        && let Ok(value) = HeaderValue::try_from(notices.to_text(MAX_HEADER_BYTES))
    {
        response
            .headers_mut()
            .insert(header_names::NOTICES.clone(), value);
    }
    response
}
