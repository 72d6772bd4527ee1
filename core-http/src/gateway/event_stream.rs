//! Ends responses of server-sent events, which have no end of their own.
//!
//! They end when the server of the gateway stops, and when the credential of the caller no longer identifies the same
//! caller.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use core_domain::gateway::Credential;
use core_domain::kernel::Caller;
use http::Response;
use http::header::CONTENT_TYPE;
use http_body::Frame;

use super::session_cache::SessionCache;
use crate::kernel::{Body, BoxError, Draining, TokenDigest};

/// The interval at which the credential of a stream is resolved again. Together with the default time-to-live of the
/// session cache, a stream of a service in another process ends at most 5 seconds after the credential does.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(3);

/// The credential of a request, with the digest of its secret.
#[derive(Clone, Debug)]
pub(crate) struct PresentedCredential {
    pub(crate) credential: Credential,
    pub(crate) digest: TokenDigest,
}

/// The conditions under which a response may continue.
#[derive(Debug)]
pub(crate) struct Lifetime {
    pub(crate) draining: Option<Draining>,
    pub(crate) sessions: Arc<SessionCache>,
    /// The credential of the request. `None` if the route needs no credential, or for the service key.
    pub(crate) presented: Option<PresentedCredential>,
    pub(crate) caller: Arc<Caller>,
}

impl Lifetime {
    /// Completes when the server stops, or when the credential no longer identifies the caller.
    async fn wait_for_end(self) {
        let draining = async {
            match self.draining {
                Some(mut draining) => draining.wait().await,
                None => pending().await,
            }
        };
        let refused = async {
            match self.presented {
                Some(presented) => credential_ended(&self.sessions, &presented, &self.caller).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = draining => {}
            () = refused => {}
        }
    }
}

/// Completes when the credential no longer identifies the caller, or cannot be resolved.
async fn credential_ended(
    sessions: &SessionCache,
    presented: &PresentedCredential,
    caller: &Caller,
) {
    loop {
        tokio::time::sleep(RESOLVE_INTERVAL).await;
        let resolved = sessions.resolve(&presented.credential, &presented.digest);
        match resolved.await {
            Ok(resolved) if !resolved.suspended && *resolved.caller == *caller => {}
            _ => return,
        }
    }
}

/// Returns whether the response is a stream of server-sent events.
pub(crate) fn is_event_stream(response: &Response<Body>) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE);
    content_type.is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"))
}

/// Returns a body that ends when its lifetime ends.
pub(crate) fn limit_lifetime(body: Body, lifetime: Lifetime) -> Body {
    Body::new(LimitedBody {
        body,
        ended: Box::pin(lifetime.wait_for_end()),
    })
}

/// A body that ends early when its lifetime ends.
struct LimitedBody {
    body: Body,
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl http_body::Body for LimitedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.ended.as_mut().poll(cx).is_ready() {
            // A future must not be polled after completion; this one stays ready.
            self.ended = Box::pin(std::future::ready(()));
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }
}
