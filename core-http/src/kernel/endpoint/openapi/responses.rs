//! The responses of operations: the content and headers of successes, and the codes of every error status.

use std::collections::BTreeMap;

use core_domain::access::Requirement;
use core_domain::kernel::Code;
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::components::{
    Components, ERROR, ERROR_OF_OAUTH, ERROR_WITH_CODE, ERROR_WITHOUT_DETAILS,
};
use super::description::of_codes;
use super::parameters::takes_query;
use crate::kernel::answer::envelope::ErrorStyle;
use crate::kernel::endpoint::definition::Endpoint;
use crate::kernel::endpoint::service_error::ServiceError;
use crate::kernel::request::media_types::{EVENT_STREAM, HTML, JSON};

/// Returns the responses of an endpoint by status, and adds their schemas to the components.
///
/// # Errors
/// [`ServiceError::Schema`] if a schema of the endpoint cannot be compiled.
pub(super) fn of(endpoint: &Endpoint, components: &mut Components) -> Result<Value, ServiceError> {
    let mut responses = Map::new();
    let mut success = success(endpoint, components)?;
    for status in endpoint.success() {
        success["description"] = status.canonical_reason().unwrap_or("Success").into();
        let mut response = success.clone();
        if status.is_redirection() {
            if let Some(fields) = response.as_object_mut() {
                fields.remove("content");
            }
            response["headers"]["Location"] = described_header("The page to open next.");
        }
        responses.insert(status.as_str().to_owned(), response);
    }
    if endpoint.shapes()?.answer.etag && endpoint.method() == Method::GET {
        let unchanged = json!({
            "description": "The record still has an entity tag of `If-None-Match`. The response has no body.",
        });
        responses.insert(StatusCode::NOT_MODIFIED.as_str().to_owned(), unchanged);
    }
    for (status, codes) in refusals(endpoint)? {
        responses.insert(
            status.as_str().to_owned(),
            refusal(endpoint, status, &codes),
        );
    }
    Ok(Value::Object(responses))
}

/// Returns the response of a success, without its description.
fn success(endpoint: &Endpoint, components: &mut Components) -> Result<Value, ServiceError> {
    let answer = endpoint.shapes()?.answer;
    let mut response = json!({});
    if let Some(describe) = answer.schema {
        let schema = components.output(describe);
        response["content"] = match answer.content_type {
            Some(stream) if stream != JSON => json!({ stream: events_of(&schema) }),
            _ => json!({ JSON: { "schema": schema } }),
        };
        if let Some(describe) = answer.events {
            response["content"][EVENT_STREAM] = events_of(&components.output(describe));
        }
        for other in endpoint.content_types() {
            if response["content"].get(other).is_none() {
                response["content"][other] = json!({ "schema": { "type": "string" } });
            }
        }
    } else {
        let bytes = json!({ "schema": { "type": "string" } });
        let content = endpoint.content_types().iter();
        let content: Map<String, Value> =
            content.map(|t| ((*t).to_owned(), bytes.clone())).collect();
        if !content.is_empty() {
            response["content"] = Value::Object(content);
        }
    }
    let mut headers = Map::new();
    if answer.etag {
        let description = "The entity tag of the record, for `If-Match` and `If-None-Match`.";
        headers.insert("ETag".into(), described_header(description));
    }
    if endpoint.takes_idempotency_keys() {
        let description = "`true` on the stored response to an earlier request with the same \
             `Idempotency-Key`; absent otherwise.";
        headers.insert("Idempotency-Replayed".into(), described_header(description));
    }
    if !headers.is_empty() {
        response["headers"] = Value::Object(headers);
    }
    Ok(response)
}

/// Returns the content of a stream of server-sent events whose data has this schema.
fn events_of(schema: &Value) -> Value {
    json!({ "schema": {
        "type": "string", "contentMediaType": JSON, "contentSchema": schema,
        "description": "Server-sent events. The data of each event is JSON of this type.",
    } })
}

/// Returns a text header with a description.
fn described_header(description: &str) -> Value {
    json!({ "description": description, "schema": { "type": "string" } })
}

/// Returns the response of an error status with these codes.
fn refusal(endpoint: &Endpoint, status: StatusCode, codes: &[Code]) -> Value {
    let schemas: &[&str] = match endpoint.row.style {
        ErrorStyle::Envelope | ErrorStyle::Page | ErrorStyle::Html => &[ERROR],
        ErrorStyle::TopLevelCode => &[ERROR_WITH_CODE],
        ErrorStyle::WithoutDetails => &[ERROR_WITHOUT_DETAILS],
        ErrorStyle::OAuth | ErrorStyle::OAuthForm => &[ERROR, ERROR_OF_OAUTH],
    };
    let names: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
    let reference = |schema: &&str| json!({ "$ref": format!("#/components/schemas/{schema}") });
    let schema = match schemas {
        [one] => reference(one),
        any => json!({ "anyOf": any.iter().map(reference).collect::<Vec<_>>() }),
    };
    let mut response = json!({
        "description": of_codes(codes),
        "content": { JSON: { "schema": schema } },
        "x-codes": names,
    });
    if matches!(endpoint.row.style, ErrorStyle::Page | ErrorStyle::Html) {
        response["content"][HTML] = json!({ "schema": { "type": "string" } });
    }
    let retry_later = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    if retry_later {
        let seconds = json!({ "type": "integer", "minimum": 0 });
        let description = "The number of seconds after which to retry.";
        let header = json!({ "description": description, "schema": seconds });
        response["headers"] = json!({ "Retry-After": header });
    }
    response
}

/// Returns the error codes of an endpoint by status: those that the row declares, and those that follow from its input
/// and its requirement.
fn refusals(endpoint: &Endpoint) -> Result<BTreeMap<StatusCode, Vec<Code>>, ServiceError> {
    let row = &endpoint.row;
    let shapes = endpoint.shapes()?;
    let requirement = endpoint.requirement();
    let mut codes = row.refuses.clone();
    codes.extend([
        Code::BadRequest,
        Code::NotAcceptable,
        Code::RateLimited,
        Code::InternalError,
        Code::ServiceUnavailable,
    ]);
    if shapes.body.is_some() {
        codes.extend([
            Code::MalformedJson,
            Code::PayloadTooLarge,
            Code::UnsupportedMediaType,
        ]);
    }
    if shapes.body.is_some() || shapes.query.is_some() {
        codes.push(Code::ValidationError);
    }
    if takes_query(endpoint, "cursor")? {
        codes.push(Code::InvalidCursor);
    }
    if shapes.params > 0 {
        codes.push(Code::NotFound);
    }
    if !endpoint.method().is_safe() {
        // `InvalidOrigin` occurs only if no service key is configured.
        codes.extend([Code::InvalidOrigin, Code::UnsupportedMediaType]);
    }
    if requirement != Requirement::Public {
        codes.push(Code::Unauthorized);
    }
    let asks_role = !matches!(
        requirement,
        Requirement::Public
            | Requirement::Person
            | Requirement::Account
            | Requirement::Session
            | Requirement::SignedIn
    );
    if asks_role {
        codes.push(Code::Forbidden);
    }
    if matches!(
        requirement,
        Requirement::SignedIn
            | Requirement::NewOrganization
            | Requirement::Permission(_)
            | Requirement::SessionPermission(_)
    ) {
        codes.push(Code::PlatformSuspended);
    }
    let writes_to_platform =
        !endpoint.method().is_safe() && endpoint.path().contains("{platformId}");
    if asks_role && writes_to_platform {
        // The platform was deleted.
        codes.push(Code::InvalidState);
    }
    if endpoint.takes_idempotency_keys() {
        codes.extend([
            Code::ValidationError,
            Code::IdempotencyKeyReused,
            Code::IdempotencyInProgress,
        ]);
    }
    if endpoint.honours_if_match() || endpoint.row.if_none_match {
        codes.push(Code::VersionConflict);
    }
    let mut refusals: BTreeMap<StatusCode, Vec<Code>> = BTreeMap::new();
    for code in codes {
        let code = row.replace_code(code);
        let of_status = refusals.entry(row.status_of(code)).or_default();
        if !of_status.contains(&code) {
            of_status.push(code);
        }
    }
    Ok(refusals)
}
