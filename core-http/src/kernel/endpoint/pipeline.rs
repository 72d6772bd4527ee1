//! The pipeline: processes a request the same way for every endpoint of every service.
//!
//! 1. CORS: a preflight gets its response at once.
//! 2. Routing: find the row by path and method.
//! 3. Authentication, and the part of the authorization that depends on the caller alone.
//! 4. Validation of path, query and body.
//! 5. The idempotency key: a repeated request gets the stored response.
//! 6. The handler, in a unit of work.
//! 7. The response: entity tags and 304, or an error in the style of the row.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use core_domain::access::AuditEvent;
use core_domain::kernel::{
    Caller, Code, Context, Error, IfMatch, RequestInfo, Result, canonical_json,
};
use core_domain::port::{Mode, transact, transact_if};
use core_domain::use_case::shared::record_dry_run;
use futures_util::FutureExt;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};

use super::authenticate::identify;
use super::check_request::{check, check_query, refuse};
use super::compiled::CompiledService;
use super::definition::{Endpoint, Handler, HandlerOutcome, ListRuns, UnitRun};
use super::final_refusal;
use super::health;
use super::measurement::{Measurement, Target};
use super::two_parts;
use crate::kernel::admission::idempotency::{Claim, ClaimRules, KeyScope, Progress};
use crate::kernel::answer::envelope::as_page;
use crate::kernel::answer::envelope::{ErrorStyle, error_response};
use crate::kernel::answer::long_poll::{Wait, poll_until};
use crate::kernel::answer::reply::{Content, Reply};
use crate::kernel::reference::{self, Document};
use crate::kernel::request::body::{Body, bytes_body, empty_body};
use crate::kernel::request::client::client_ip;
use crate::kernel::request::client::request_id;
use crate::kernel::request::context::Cx;
use crate::kernel::request::header_names;
use crate::kernel::request::idempotency_key::key_of;
use crate::kernel::request::media_types::JSON;
use crate::kernel::request::parse::ParsedRequest;

/// The maximum stored length of a `User-Agent`, in bytes. Longer ones are cut off.
const MAX_USER_AGENT_BYTES: usize = 512;

/// Returns the response to a request. Errors and panics become error responses. `refusal` is the error of an earlier
/// check; with one, the request is not processed.
pub(crate) async fn answer(
    service: &CompiledService,
    request: Request<Body>,
    refusal: Option<Error>,
    measured: &mut Measurement<'_>,
) -> Response<Body> {
    let id = request_id(&service.app, request.headers());
    if let Some(span) = measured.span() {
        span.set_request_id(text(&id));
    }
    let is_head = request.method() == Method::HEAD;
    let cors = service.cors.as_ref();
    let origin = cors.and_then(|cors| cors.allowed_origin(request.headers()));
    let preflight = cors.and_then(|cors| cors.preflight(request.method(), request.headers()));
    let style = default_style(service, &request);
    let mut response = match (preflight, refusal) {
        (Some(response), _) => response,
        (None, Some(error)) => {
            measured.count_error(error.code());
            let style = refusal_style(service, request, style, measured);
            failure_response(service, &error, text(&id), style, None)
        }
        (None, None) => respond(service, request, text(&id), style, measured).await,
    };
    let headers = response.headers_mut();
    if let Some(cors) = cors {
        cors.expose(origin, headers);
    }
    headers.insert(header_names::REQUEST_ID.clone(), id);
    if is_head {
        without_body(response)
    } else {
        response
    }
}

/// Returns a request id as text, which it always is.
fn text(id: &HeaderValue) -> &str {
    id.to_str().unwrap_or("")
}

/// Processes a request, and converts an error or a panic into an error response.
async fn respond(
    service: &CompiledService,
    request: Request<Body>,
    id: &str,
    mut style: ErrorStyle,
    measured: &mut Measurement<'_>,
) -> Response<Body> {
    let cookies = service.better_auth_cookies(request.headers(), style);
    let mut row = None;
    let handled = handle(service, request, id, &mut style, &mut row, measured);
    let outcome = AssertUnwindSafe(handled)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(Error::Internal("a handler panicked".to_owned())));
    outcome.unwrap_or_else(|error| {
        measured.count_error(error.code());
        let status = row.map(|row: &Endpoint| row.row.status_of(error.code()));
        let mut response = failure_response(service, &error, id, style, status);
        if matches!(error, Error::Unauthorized) {
            service
                .identify
                .clear_cookies(&cookies, response.headers_mut());
        }
        response
    })
}

/// Creates the response to a failed request: HTML if the style asks for a page, otherwise JSON.
fn failure_response(
    service: &CompiledService,
    error: &Error,
    id: &str,
    style: ErrorStyle,
    status: Option<StatusCode>,
) -> Response<Body> {
    let response = error_response(error, id, style, status);
    match &service.error_pages {
        Some(pages) if style == ErrorStyle::Html => as_page(pages.as_ref(), response, id),
        _ => response,
    }
}

/// Returns the error style of a request before its row is known.
fn default_style(service: &CompiledService, request: &Request<Body>) -> ErrorStyle {
    match service.better_auth {
        Some(below) if request.uri().path().starts_with(below) => ErrorStyle::TopLevelCode,
        _ if service.error_pages.is_some() => ErrorStyle::Page.for_request(request.headers()),
        _ => ErrorStyle::Envelope,
    }
}

/// Returns the error style of a request that is refused before it is routed.
fn refusal_style(
    service: &CompiledService,
    request: Request<Body>,
    default: ErrorStyle,
    measured: &mut Measurement<'_>,
) -> ErrorStyle {
    let (parts, _) = request.into_parts();
    let Some(route) = service.route(&parts) else {
        return default;
    };
    let Some((row, endpoint)) = service.endpoint(&route, &parts.method) else {
        return default;
    };
    measured.set_target(Target::Row(row));
    style_of(endpoint, &parts, default)
}

/// Returns the error style of a row for a request.
fn style_of(endpoint: &Endpoint, parts: &Parts, default: ErrorStyle) -> ErrorStyle {
    match endpoint.row.style {
        ErrorStyle::Envelope if default == ErrorStyle::TopLevelCode => default,
        style => style.for_request(&parts.headers),
    }
}

/// Removes the body for a `HEAD` request. `Content-Length` keeps the length of the body, if it is known.
fn without_body(response: Response<Body>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    if let Some(length) = http_body::Body::size_hint(&body).exact() {
        parts
            .headers
            .insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(parts, empty_body())
}

/// Processes a request. Sets `style` and `row` as soon as the row is known, so that errors take its form.
async fn handle<'s>(
    service: &'s CompiledService,
    request: Request<Body>,
    id: &str,
    style: &mut ErrorStyle,
    row: &mut Option<&'s Endpoint>,
    measured: &mut Measurement<'_>,
) -> Result<Response<Body>> {
    let (mut parts, body) = request.into_parts();
    let Some(route) = service.route(&parts) else {
        let answer = Box::pin(built_in(service, &parts)).await;
        if answer.is_ok() {
            measured.set_target(Target::BuiltIn);
        }
        return answer;
    };
    let Some((index, endpoint)) = service.endpoint(&route, &parts.method) else {
        measured.count_error(Code::MethodNotAllowed);
        return Ok(method_not_allowed(service, &route.allow(), id, *style));
    };
    *row = Some(endpoint);
    measured.set_target(Target::Row(index));
    *style = style_of(endpoint, &parts, *style);
    let params = route.into_params();
    let caller = identify(service, &mut parts).await?;
    let mut trace_id = None;
    if let Some(span) = measured.span() {
        span.set_caller(&caller);
        trace_id = Some(span.trace_id().to_owned());
    }
    let allowed = endpoint.requirement().check(&caller);
    allowed.map_err(|refusal| endpoint.row.replace_error(refusal))?;
    let mut parsed = ParsedRequest::of(params.ok_or(Error::NotFound("resource"))?);
    let mut cx = context(service, endpoint, &mut parts, caller, id);
    if trace_id.is_some() {
        cx.domain.request.trace_id = trace_id;
    }
    cx.ensure_acceptable(endpoint.content_types())?;
    if let Handler::Upload(run) = &endpoint.handler {
        check_query(endpoint, &cx, &mut parsed).and_then(refuse)?;
        return finish_response(endpoint, &cx, run(&cx, &parsed, body).await?);
    }
    check(endpoint, &cx, body, &mut parsed).await?;
    let claim = claim(service, endpoint, &cx, &parsed)?;
    let reply = run(endpoint, &cx, &parsed, claim).await?;
    finish_response(endpoint, &cx, reply)
}

/// Responds to the paths that every service has: `/health`, `/livez`, `/readyz`, `/openapi.json`, and the API reference
/// at `/docs`. A row with the same path takes precedence.
async fn built_in(service: &CompiledService, parts: &Parts) -> Result<Response<Body>> {
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return Err(Error::NotFound("route"));
    }
    if parts.uri.path() == "/openapi.json" {
        let document = service.openapi();
        let document = document.map_err(|error| Error::Internal(error.to_string()))?;
        let mut response = Response::new(bytes_body(document));
        let json = HeaderValue::from_static(JSON);
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        return Ok(response);
    }
    let documents = || vec![Document::of_service(service.name)];
    if let Some(response) = reference::answer(parts, documents) {
        return Ok(response);
    }
    let (app, path) = (&service.app, parts.uri.path());
    health::answer(app, service.name, path, &parts.extensions)
        .await
        .map(Reply::into_response)
        .ok_or(Error::NotFound("route"))
}

/// Creates the 405 response to a known path with an unsupported method.
fn method_not_allowed(
    service: &CompiledService,
    allow: &str,
    id: &str,
    style: ErrorStyle,
) -> Response<Body> {
    let error = Error::refused(
        Code::MethodNotAllowed,
        "This path does not support the method.",
    );
    let mut response = failure_response(service, &error, id, style, None);
    if let Ok(value) = HeaderValue::from_str(allow) {
        response.headers_mut().insert(header::ALLOW, value);
    }
    response
}

/// Creates the context of a request. Takes the URI, the headers and the extensions out of `parts`.
fn context(
    service: &CompiledService,
    endpoint: &Endpoint,
    parts: &mut Parts,
    caller: Arc<Caller>,
    id: &str,
) -> Cx {
    let text = |name: &HeaderName| parts.headers.get(name)?.to_str().ok();
    // Several header lines form one list. A line that is not text contains no tag.
    let tags = |name: &HeaderName| {
        let lines = parts.headers.get_all(name).iter();
        let lines: Vec<_> = lines.map(|l| l.to_str().unwrap_or_default()).collect();
        (!lines.is_empty()).then(|| lines.join(","))
    };
    let request = RequestInfo {
        request_id: id.to_owned(),
        trace_id: text(&header_names::TRACE_ID).map(str::to_owned),
        ip: client_ip(&service.app, &service.proxies, parts),
        user_agent: text(&header::USER_AGENT).map(shorten_user_agent),
    };
    Cx {
        domain: Context {
            caller,
            request,
            entropy: Arc::clone(&service.app.entropy),
            limits: Arc::clone(&service.app.options.limits),
            if_match: tags(&header::IF_MATCH)
                .filter(|_| endpoint.honours_if_match())
                .map(|list| IfMatch::strong(&list)),
            if_none_match: tags(&header::IF_NONE_MATCH)
                .filter(|_| endpoint.row.if_none_match)
                .map(|list| IfMatch::weak(&list)),
        },
        app: Arc::clone(&service.app),
        method: parts.method.clone(),
        uri: std::mem::take(&mut parts.uri),
        headers: std::mem::take(&mut parts.headers),
        extensions: std::mem::take(&mut parts.extensions),
        success: endpoint.first_success(),
    }
}

/// Cuts off a `User-Agent`, which is stored with every session and in the audit log.
fn shorten_user_agent(text: &str) -> String {
    // The text of a header is ASCII, so every index is a character boundary.
    text.get(..MAX_USER_AGENT_BYTES).unwrap_or(text).to_owned()
}

/// Returns the documented path with its parameters filled in, so that all spellings of a path are the same request.
fn documented_path(pattern: &str, params: &[String]) -> String {
    let mut params = params.iter();
    let segments = pattern.split('/').map(|segment| {
        if segment.starts_with('{') {
            params.next().map_or("", String::as_str)
        } else {
            segment
        }
    });
    segments.collect::<Vec<_>>().join("/")
}

/// Claims the idempotency key of the request, if the row accepts keys and the request has one.
///
/// # Errors
/// - `VALIDATION_ERROR` if the key is malformed.
/// - `IDEMPOTENCY_IN_PROGRESS` if a request with the same key is in progress.
fn claim(
    service: &CompiledService,
    endpoint: &Endpoint,
    cx: &Cx,
    parsed: &ParsedRequest,
) -> Result<Option<Claim>> {
    if !endpoint.takes_idempotency_keys() {
        return Ok(None);
    }
    let in_body = endpoint
        .row
        .key_field
        .and_then(|field| parsed.body.get(field));
    let in_body = in_body.and_then(serde_json::Value::as_str);
    let Some(key) = key_of(&cx.headers)?.or(in_body) else {
        return Ok(None);
    };
    let path = documented_path(endpoint.path(), &parsed.path);
    let scope = KeyScope {
        service: service.name,
        caller: &cx.caller,
    };
    let body = canonical_json(&parsed.body);
    let query = cx.uri.query().unwrap_or_default();
    let request = [cx.method.as_str(), &path, query, &body];
    let rules = ClaimRules {
        cipher: endpoint.row.secret_answer.then(|| cx.app.cipher.clone()),
        ends_access: endpoint.row.ends_access,
        not_found: endpoint.row.replace_code(Code::NotFound),
    };
    Claim::of(&cx.app.in_flight, &scope, key, &request, rules).map(Some)
}

/// Runs the handler of a row that is not an upload.
async fn run(
    endpoint: &Endpoint,
    cx: &Cx,
    parsed: &ParsedRequest,
    claim: Option<Claim>,
) -> Result<Reply> {
    let outcome = match &endpoint.handler {
        Handler::Unit(Mode::Write, handler) => {
            let progress = Progress::of(claim);
            Box::pin(write(endpoint, cx, parsed, handler.as_ref(), &progress)).await
        }
        Handler::Unit(mode, handler) => {
            let seen = read_once(cx, parsed, *mode, handler.as_ref()).await;
            seen.map(|seen| seen.reply)
        }
        Handler::List(runs) => Box::pin(list(cx, parsed, runs)).await,
        Handler::TwoParts(parts) => {
            let progress = Progress::of(claim);
            let run = two_parts::run(endpoint, cx, parsed, parts, &progress);
            return Box::pin(run).await;
        }
        // Boxed, so that long polls do not enlarge the future of every request.
        Handler::Waits(handler) => Box::pin(wait(cx, parsed, handler.as_ref())).await,
        Handler::Plain(handler) => handler(cx, parsed).await,
        Handler::Upload(_) => Err(Error::Internal(
            "an upload was routed to the handlers of JSON requests".to_owned(),
        )),
    };
    outcome.map_err(|error| endpoint.row.replace_error(error))
}

/// Runs a handler that writes. If the request has an idempotency key, the response is stored in the same unit of work;
/// a final refusal is stored in another one.
async fn write(
    endpoint: &Endpoint,
    cx: &Cx,
    parsed: &ParsedRequest,
    handler: &UnitRun,
    progress: &Progress,
) -> Result<Reply> {
    let store = cx.app.store.as_ref();
    let seen = transact_if(store, HandlerOutcome::has_happened, |uow, _| {
        progress.reset();
        Box::pin(async move {
            let seen = handler(cx, uow, parsed, progress).await?;
            if let Some(claim) = progress.claim().filter(|_| seen.has_happened()) {
                let answer = claim.record(&seen.reply, progress.needs_proof())?;
                claim.store(uow, answer).await?;
            }
            Ok(seen)
        })
    });
    let outcome = match seen.await {
        Ok(HandlerOutcome {
            reply,
            dry_run: Some(event),
            ..
        }) => answer_dry_run(cx, reply, &event, progress).await,
        Ok(seen) => Ok(seen.reply),
        Err(error) => Err(endpoint.row.replace_error(error)),
    };
    if let (Err(error), Some(claim)) = (&outcome, progress.claim())
        && progress.was_authorized()
        && final_refusal::is_final(error)
    {
        final_refusal::store(endpoint, cx, claim, error, progress.needs_proof()).await?;
    }
    outcome
}

/// Records a dry run in the audit log, and stores its response under the idempotency key of the request.
async fn answer_dry_run(
    cx: &Cx,
    reply: Reply,
    event: &AuditEvent,
    progress: &Progress,
) -> Result<Reply> {
    let record = |claim: &Claim| claim.record(&reply, progress.needs_proof());
    let answer = progress.claim().map(record);
    let answer = &answer.transpose()?;
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(async move {
            record_dry_run(cx, uow, event).await?;
            match (progress.claim(), answer) {
                (Some(claim), Some(answer)) => claim.store(uow, answer.clone()).await,
                _ => Ok(()),
            }
        })
    })
    .await?;
    Ok(reply)
}

/// Runs a handler that reads, in a unit of work that is rolled back.
async fn read_once(
    cx: &Cx,
    parsed: &ParsedRequest,
    mode: Mode,
    handler: &UnitRun,
) -> Result<HandlerOutcome> {
    let mut uow = cx.app.store.begin(mode).await?;
    let seen = handler(cx, uow.as_mut(), parsed, &Progress::default()).await;
    uow.rollback().await;
    seen
}

/// Reads a page of a list: from a replica if the store has one that is not too far behind, otherwise from the primary.
///
/// After an error on the replica, the primary decides. The replica may lack a record that exists, such as the parent of the
/// list, and its units can fail because of the changes that it replays.
async fn list(cx: &Cx, parsed: &ParsedRequest, runs: &ListRuns) -> Result<Reply> {
    if let Some(mut uow) = cx.app.store.begin_stale().await {
        let run = runs.on_replica.as_ref();
        let seen = run(cx, uow.as_mut(), parsed, &Progress::default()).await;
        uow.rollback().await;
        if let Ok(seen) = seen {
            return Ok(seen.reply);
        }
    }
    let seen = read_once(cx, parsed, runs.mode, runs.on_primary.as_ref()).await;
    seen.map(|seen| seen.reply)
}

/// Runs the handler of a long poll repeatedly, until its condition holds or the time is up.
async fn wait(cx: &Cx, parsed: &ParsedRequest, handler: &UnitRun) -> Result<Reply> {
    let wait = parsed.query.get("wait").and_then(serde_json::Value::as_u64);
    let look = || read_once(cx, parsed, Mode::Read, handler);
    let seen = poll_until(wait.map(Wait), &cx.app.jobs, look, |seen| &seen.wait_target).await?;
    Ok(seen.reply)
}

/// Converts a reply into a response. The response to a `GET` is 304 if `If-None-Match` includes its entity tag.
///
/// # Errors
/// `INTERNAL_ERROR` if a success has a content type that the row does not declare.
fn finish_response(endpoint: &Endpoint, cx: &Cx, mut reply: Reply) -> Result<Response<Body>> {
    let content_type = reply.content.content_type();
    // Errors are not checked: a stored refusal is JSON, also if the row declares another content type.
    let undescribed = |given| !endpoint.content_types().contains(&given);
    if reply.status.is_success() && content_type.is_some_and(undescribed) {
        let what = format!(
            "{} returned the undeclared content type {content_type:?}",
            endpoint.operation()
        );
        return Err(Error::Internal(what));
    }
    let reading = matches!(cx.method, Method::GET | Method::HEAD);
    let known = reply
        .etag
        .as_deref()
        .is_some_and(|etag| cx.if_none_match(etag));
    if reading && known && reply.status == StatusCode::OK {
        reply.status = StatusCode::NOT_MODIFIED;
        reply.content = Content::Empty;
    }
    Ok(reply.into_response())
}
