//! The way of a request: route, identify, check, run, answer. The same for every endpoint of every service.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use core_domain::kernel::{
    Caller, Code, Context, Error, Issue, RequestInfo, Result, canonical_json,
};
use core_domain::port::{Mode, transact};
use futures_util::FutureExt;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};

use super::client::client_ip;
use super::envelope::kept_body;
use super::handler::Handler;
use super::parse::{Parsed, form_object, is_form, json_body};
use super::service::Inner;
use super::{
    Body, Claim, Cx, Endpoint, ErrorStyle, ForwardedPrefix, MAX_BODY_BYTES, Reply, bytes_body,
    empty_body, error_response, header_names, health, read_body, request_id, status_of,
};

/// How much of a `User-Agent` is kept, in bytes.
const MOST_OF_USER_AGENT: usize = 512;

/// Answers a request, whatever happens.
pub(super) async fn answer(service: &Inner, request: Request<Body>) -> Response<Body> {
    let id = request_id(&service.app, request.headers());
    let is_head = request.method() == Method::HEAD;
    let origin = service.pages.origin_of(request.headers());
    let mut response = match service.pages.preflight(&request) {
        Some(response) => response,
        None => handled(service, request, &id).await,
    };
    service.pages.allow(origin, response.headers_mut());
    if let Ok(value) = HeaderValue::from_str(&id) {
        response
            .headers_mut()
            .insert(header_names::REQUEST_ID, value);
    }
    if is_head {
        without_body(response)
    } else {
        response
    }
}

async fn handled(service: &Inner, request: Request<Body>, id: &str) -> Response<Body> {
    let mut style = default_style(service, request.uri().path());
    let outcome = AssertUnwindSafe(handle(service, request, id, &mut style))
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(Error::Internal("a handler panicked".to_owned())));
    outcome.unwrap_or_else(|error| error_response(&error, id, style))
}

fn default_style(service: &Inner, path: &str) -> ErrorStyle {
    match service.better_auth {
        Some(below) if path.starts_with(below) => ErrorStyle::TopLevelCode,
        _ => ErrorStyle::Envelope,
    }
}

fn without_body(response: Response<Body>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    if let Some(length) = http_body::Body::size_hint(&body).exact() {
        parts
            .headers
            .insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(parts, empty_body())
}

async fn handle(
    service: &Inner,
    request: Request<Body>,
    id: &str,
    style: &mut ErrorStyle,
) -> Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let prefix = prefix_of(&parts);
    let Some(route) = service.router.find(path, prefix.as_deref()) else {
        return built_in(service, &parts).await;
    };
    let Some(endpoint) = route
        .row(&parts.method)
        .and_then(|row| service.endpoints.get(row))
    else {
        return Ok(wrong_method(&route.allow(), id, *style));
    };
    if endpoint.row.style != ErrorStyle::Envelope {
        *style = endpoint.row.style;
    }
    let content_type = parts
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok());
    let sends_form = endpoint.row.takes_forms && is_form(content_type);
    let caller = service.identify.identify(&service.app, &parts).await?;
    endpoint.row.access.check(&caller)?;
    let segments = route.params.ok_or(Error::NotFound("resource"))?;
    let mut parsed = Parsed {
        path: segments,
        ..Parsed::default()
    };
    let mut cx = context(service, endpoint, &parts, caller, id, &parsed.path);
    if let Handler::Upload(run) = &endpoint.handler {
        check_query(endpoint, &parts, &mut parsed).and_then(refuse)?;
        return run(&cx, &parsed, body).await.map(Reply::into_response);
    }
    cx.accepts_json()?;
    check(endpoint, &parts, sends_form, body, &mut parsed).await?;
    if is_write(&cx.method) {
        cx.claim = claim(&cx)?;
        cx.request_hash = Claim::request_hash(cx.query.as_deref(), &canonical_json(&parsed.body));
    }
    let reply = run(endpoint, &cx, &parsed).await?;
    Ok(finished(&cx, reply))
}

/// `/health` and its like, for any service that has no row of its own for them.
async fn built_in(service: &Inner, parts: &Parts) -> Result<Response<Body>> {
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return Err(Error::NotFound("route"));
    }
    if parts.uri.path() == "/openapi.json" {
        let mut response = Response::new(bytes_body(service.openapi.clone()));
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        return Ok(response);
    }
    health::answer(&service.app, service.name, parts.uri.path())
        .await
        .map(Reply::into_response)
        .ok_or(Error::NotFound("route"))
}

fn wrong_method(allow: &str, id: &str, style: ErrorStyle) -> Response<Body> {
    let error = Error::refused(
        Code::MethodNotAllowed,
        "The route does not know this method.",
    );
    let mut response = error_response(&error, id, style);
    if let Ok(value) = HeaderValue::from_str(allow) {
        response.headers_mut().insert(header::ALLOW, value);
    }
    response
}

fn prefix_of(parts: &Parts) -> Option<String> {
    if let Some(ForwardedPrefix(prefix)) = parts.extensions.get::<ForwardedPrefix>() {
        return Some(prefix.clone());
    }
    let value = parts
        .headers
        .get(header_names::FORWARDED_PREFIX)?
        .to_str()
        .ok()?;
    Some(value.to_owned())
}

fn context(
    service: &Inner,
    endpoint: &Endpoint,
    parts: &Parts,
    caller: Caller,
    id: &str,
    params: &[String],
) -> Cx {
    let text = |name: &str| {
        let value = parts.headers.get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let request = RequestInfo {
        request_id: id.to_owned(),
        trace_id: text(header_names::TRACE_ID),
        ip: client_ip(service, parts),
        user_agent: text("user-agent").map(shortened),
    };
    Cx {
        domain: Context {
            caller,
            request,
            entropy: Arc::clone(&service.app.entropy),
        },
        app: Arc::clone(&service.app),
        method: parts.method.clone(),
        path: documented_path(endpoint.path(), params),
        query: parts.uri.query().map(str::to_owned),
        headers: parts.headers.clone(),
        claim: None,
        request_hash: String::new(),
        success: endpoint.first_success(),
    }
}

/// The beginning of a client's own text that is kept with every session and in the audit.
fn shortened(mut text: String) -> String {
    // A header that is text is ASCII.
    text.truncate(MOST_OF_USER_AGENT);
    text
}

/// The documented path with its parameters filled in.
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

fn is_write(method: &Method) -> bool {
    matches!(
        *method,
        Method::POST | Method::PUT | Method::PATCH | Method::DELETE
    )
}

fn claim(cx: &Cx) -> Result<Option<Claim>> {
    Claim::of(
        &cx.app.in_flight,
        &cx.caller,
        &cx.method,
        &cx.path,
        &cx.headers,
    )
}

/// Query and body against their schemas, all violations at once.
async fn check(
    endpoint: &Endpoint,
    parts: &Parts,
    sends_form: bool,
    body: Body,
    parsed: &mut Parsed,
) -> Result<()> {
    let mut issues = check_query(endpoint, parts, parsed)?;
    if let Some(checker) = &endpoint.shapes.body {
        let bytes = read_body(body, MAX_BODY_BYTES).await?;
        let content_type = parts
            .headers
            .get(header::CONTENT_TYPE)
            .map(|v| v.to_str().unwrap_or_default());
        parsed.body = if sends_form {
            form_object(&bytes, checker)?
        } else {
            json_body(content_type, &bytes)?
        };
        issues.extend(checker.issues(&parsed.body));
    }
    refuse(issues)
}

fn check_query(endpoint: &Endpoint, parts: &Parts, parsed: &mut Parsed) -> Result<Vec<Issue>> {
    let Some(checker) = &endpoint.shapes.query else {
        return Ok(Vec::new());
    };
    parsed.query = form_object(parts.uri.query().unwrap_or_default().as_bytes(), checker)?;
    Ok(checker.issues(&parsed.query))
}

fn refuse(issues: Vec<Issue>) -> Result<()> {
    if issues.is_empty() {
        Ok(())
    } else {
        Err(Error::Invalid(issues))
    }
}

async fn run(endpoint: &Endpoint, cx: &Cx, parsed: &Parsed) -> Result<Reply> {
    match &endpoint.handler {
        Handler::Unit(Mode::Write, handler) => {
            let outcome = transact(cx.app.store.as_ref(), |uow, _| {
                Box::pin(async move {
                    if let Some(reply) = seen(cx, uow).await? {
                        return Ok(reply);
                    }
                    let reply = handler(cx, uow, parsed).await?;
                    if let Some(claim) = &cx.claim {
                        claim.keep(uow, &cx.request_hash, &reply).await?;
                    }
                    Ok(reply)
                })
            })
            .await;
            settled(cx, outcome).await
        }
        Handler::Unit(mode, handler) => {
            let mut uow = cx.app.store.begin(*mode).await?;
            let reply = handler(cx, uow.as_mut(), parsed).await;
            uow.rollback().await;
            reply
        }
        Handler::Plain(handler) => {
            if cx.claim.is_some() {
                let mut uow = cx.app.store.begin(Mode::Read).await?;
                let known = seen(cx, uow.as_mut()).await;
                uow.rollback().await;
                if let Some(reply) = known? {
                    return Ok(reply);
                }
            }
            let outcome = handler(cx, parsed).await;
            settled(cx, outcome).await
        }
        Handler::Upload(_) => Err(Error::Internal(
            "uploads have a way of their own".to_owned(),
        )),
    }
}

async fn seen(cx: &Cx, uow: &mut dyn core_domain::port::UnitOfWork) -> Result<Option<Reply>> {
    match &cx.claim {
        Some(claim) => claim.seen(uow, &cx.request_hash).await,
        None => Ok(None),
    }
}

/// After a write: there may be work now; and a refusal is an answer as well, so it is kept for its key.
async fn settled(cx: &Cx, outcome: Result<Reply>) -> Result<Reply> {
    match outcome {
        Ok(reply) => {
            if is_write(&cx.method) {
                cx.app.wake.wake();
            }
            Ok(reply)
        }
        Err(error) => {
            if let Some(claim) = cx.claim.as_ref().filter(|_| is_final(&error)) {
                keep_refusal(cx, claim, &error).await?;
            }
            Err(error)
        }
    }
}

/// Tells whether the same request would be refused again for what is stored, not for how it was sent or for bad luck.
fn is_final(error: &Error) -> bool {
    match error {
        Error::NotFound(_) | Error::InvalidState { .. } | Error::VersionConflict => true,
        Error::Refused { code, .. } => {
            *code != Code::IdempotencyInProgress
                && *code != Code::IdempotencyKeyReused
                && matches!(
                    status_of(*code),
                    StatusCode::NOT_FOUND
                        | StatusCode::CONFLICT
                        | StatusCode::PRECONDITION_FAILED
                        | StatusCode::UNPROCESSABLE_ENTITY
                )
        }
        _ => false,
    }
}

async fn keep_refusal(cx: &Cx, claim: &Claim, error: &Error) -> Result<()> {
    let reply = &Reply {
        status: status_of(error.code()),
        body: Some(kept_body(error, &cx.request.request_id)),
        headers: http::HeaderMap::new(),
        tag: None,
    };
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(async move { claim.keep(uow, &cx.request_hash, reply).await })
    })
    .await
}

/// 304 for who has it already.
fn finished(cx: &Cx, mut reply: Reply) -> Response<Body> {
    let reading = matches!(cx.method, Method::GET | Method::HEAD);
    let known = reply.tag.as_deref().is_some_and(|tag| cx.already_has(tag));
    if !(reading && known && reply.status == StatusCode::OK) {
        return reply.into_response();
    }
    reply.status = StatusCode::NOT_MODIFIED;
    reply.body = None;
    let mut response = reply.into_response();
    response.headers_mut().remove(header::CONTENT_TYPE);
    response
}
