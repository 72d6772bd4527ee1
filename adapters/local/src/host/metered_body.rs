//! The body of a response whose bytes count as usage of a platform.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use core_domain::kernel::PlatformId;
use core_domain::port::TrafficMeter;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use super::SiteBody;

/// A body that reports its request when it is dropped, with the bytes that were read from it until then.
struct MeteredBody {
    inner: SiteBody,
    bytes: u64,
    platform: PlatformId,
    meter: Arc<dyn TrafficMeter>,
}

/// Makes a response count as usage of a platform when it has been sent, or when the visitor has left.
pub(super) fn meter_body(
    inner: SiteBody,
    platform: PlatformId,
    meter: Arc<dyn TrafficMeter>,
) -> SiteBody {
    let body = MeteredBody {
        inner,
        bytes: 0,
        platform,
        meter,
    };
    body.boxed()
}

impl Body for MeteredBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
        {
            let length = u64::try_from(data.len()).unwrap_or(u64::MAX);
            self.bytes = self.bytes.saturating_add(length);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for MeteredBody {
    fn drop(&mut self) {
        self.meter.count(&self.platform, self.bytes);
    }
}
