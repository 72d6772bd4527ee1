//! The span of a request at a service.

use std::sync::Arc;

use core_domain::gateway::TraceContext;
use core_domain::kernel::{Caller, Code};
use core_domain::port::SpanKind;
use http::{Method, Request, StatusCode};

use super::health;
use crate::kernel::process::tracer::{OpenSpan, Tracer};
use crate::kernel::request::body::Body;
use crate::kernel::request::header_lines::single_text;
use crate::kernel::request::header_names;
use crate::kernel::request::shown_path::{shown_method, shown_path};

/// The span of a request, from its arrival to the head of the response. It is reported when it is dropped.
#[derive(Debug)]
pub(crate) struct ServiceSpan {
    tracer: Arc<Tracer>,
    service: &'static str,
    context: TraceContext,
    method: Method,
    path: String,
    request_id: String,
    platform: Option<String>,
    error: Option<Code>,
    /// `None` if the trace is not sampled.
    span: Option<OpenSpan>,
}

impl ServiceSpan {
    /// Starts the span of a request that has just arrived. Returns `None` without a tracer, and for health checks.
    pub(crate) fn start(
        tracer: Option<&Arc<Tracer>>,
        service: &'static str,
        request: &Request<Body>,
    ) -> Option<Self> {
        let path = request.uri().path();
        let tracer = tracer.filter(|_| !health::is_probe(path))?;
        let parent = single_text(request.headers(), &header_names::TRACEPARENT);
        let context = TraceContext::begin(parent, tracer.entropy());
        let mut started = Self {
            tracer: Arc::clone(tracer),
            service,
            context,
            method: request.method().clone(),
            path: path.to_owned(),
            request_id: String::new(),
            platform: None,
            error: None,
            span: None,
        };
        started.sample(false);
        Some(started)
    }

    /// Decides whether the request is sampled. The flag of the sender decides if the sender is a gateway.
    pub(crate) fn sample(&mut self, trusts_sender: bool) {
        self.context = self.tracer.sample(self.context.clone(), trusts_sender);
        if !self.context.is_sampled() {
            if let Some(span) = self.span.take() {
                span.discard();
            }
            return;
        }
        if self.span.is_none() {
            let method = shown_method(&self.method);
            let started = self.tracer.start(&self.context, SpanKind::Server, method);
            self.span = started;
        }
    }

    /// Returns the id of the trace.
    pub(crate) fn trace_id(&self) -> &str {
        self.context.trace_id()
    }

    /// Sets the id of the request.
    pub(crate) fn set_request_id(&mut self, id: &str) {
        id.clone_into(&mut self.request_id);
    }

    /// Sets the caller of the request.
    pub(crate) fn set_caller(&mut self, caller: &Caller) {
        self.platform = caller.platform_id().map(|id| id.as_str().to_owned());
    }

    /// Sets the code of an error response.
    pub(crate) const fn set_error(&mut self, code: Code) {
        self.error = Some(code);
    }

    /// Ends the span. `template` is the path of the row, `status` that of the response, if there is one.
    pub(crate) fn end(mut self, template: Option<&str>, status: Option<StatusCode>) {
        let Some(mut span) = self.span.take() else {
            return;
        };
        let method = shown_method(&self.method);
        span.add("http.request.method", method);
        span.add("core.service", self.service);
        span.add("core.request_id", self.request_id);
        span.add_some("core.platform_id", self.platform);
        if let Some(template) = template {
            span.rename(format!("{method} {template}"));
            span.add("url.path", shown_path(&self.path, template));
            span.add("http.route", template);
        }
        let Some(status) = status else {
            return;
        };
        span.finish();
        span.add("http.response.status_code", i64::from(status.as_u16()));
        if status.is_server_error() {
            let code = self.error.map(Code::as_str);
            span.set_error(code.unwrap_or(status.as_str()));
        }
    }
}
