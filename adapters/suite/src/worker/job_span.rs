//! The span of an attempt of a job.

use std::sync::Arc;

use core_domain::gateway::{SpanId, TraceContext, TraceId};
use core_domain::port::SpanKind;
use core_domain::use_case::provisioning::{AttemptReport, HeldJob};
use core_http::kernel::{OpenSpan, Tracer};

/// Starts the span of an attempt, in the trace of the request that queued the job. The job record contains only the id of
/// that trace, so the span has no parent. A job without a trace gets a new one. Returns `None` without a tracer, if the
/// trace is not sampled, or if the attempt only records a transition.
pub(super) fn start(tracer: Option<&Arc<Tracer>>, held: &HeldJob) -> Option<OpenSpan> {
    let tracer = tracer?;
    let step = held.running_step()?;
    let (job, entropy) = (held.job(), tracer.entropy());
    let trace = job.trace_id.as_deref().and_then(TraceId::parse);
    let trace = trace.unwrap_or_else(|| TraceId::generate(entropy));
    let context = TraceContext::new(trace, SpanId::generate(entropy));
    let context = tracer.sample(context, false);
    let name = format!("job {}", job.kind);
    let mut span = tracer.start(&context, SpanKind::Consumer, name)?;
    span.add("core.job_id", job.id.as_str());
    span.add("core.job_kind", job.kind.as_str());
    span.add("core.job_step", step.name.as_str());
    span.add("core.job_attempt", step.attempts + 1);
    span.add("core.request_id", job.request_id.as_str());
    let platform = job.platform_id.as_ref().map(|id| id.as_str());
    span.add_some("core.platform_id", platform);
    Some(span)
}

/// Ends the span of an attempt. `report` is `None` if the lease was lost.
pub(super) fn end(span: Option<OpenSpan>, report: Option<&AttemptReport>) {
    let Some(mut span) = span else {
        return;
    };
    span.finish();
    match report {
        Some(report) => {
            if let Some(code) = report.error_code() {
                span.set_error(code);
            }
        }
        None => span.set_error("LEASE_LOST"),
    }
}
