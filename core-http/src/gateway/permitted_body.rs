//! A response body that holds the permit of its request.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::upstream_metrics::InFlightRequest;
use crate::kernel::{Body, BoxError};

/// A body that releases a permit when it has ended or is dropped.
#[derive(Debug)]
pub(super) struct PermittedBody {
    inner: Body,
    permit: Option<InFlightRequest>,
}

impl PermittedBody {
    pub(super) fn new(inner: Body, permit: InFlightRequest) -> Self {
        Self {
            inner,
            permit: Some(permit),
        }
    }
}

impl http_body::Body for PermittedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.permit = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
