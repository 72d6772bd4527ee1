//! The headers of a deploy request.

use core_domain::kernel::{Caller, Code, Error, Result, UserId};
use core_domain::registry::{BRANCH_PATTERN, Branch};
use http::header;

use super::media::Media;
use crate::kernel::Cx;
use crate::kernel::request::header_names::{DEPLOY_BRANCH, USER_ID};

/// A deploy request without its body.
#[derive(Debug)]
pub(super) struct DeployRequest {
    pub(super) key: Option<String>,
    pub(super) branch: Branch,
    pub(super) user_id: String,
    pub(super) media: Media,
    /// Maximum size of the body in bytes: its `Content-Length` if given, otherwise the limit.
    pub(super) max_bytes: u64,
}

impl DeployRequest {
    /// Parses the headers. Refuses a `Content-Length` above `max_bytes`.
    pub(super) fn parse(cx: &Cx, max_bytes: u64) -> Result<Self> {
        Ok(Self {
            key: cx.idempotency_key()?.map(str::to_owned),
            branch: branch(cx)?,
            user_id: user(cx)?,
            media: Media::of(&cx.headers)?,
            max_bytes: length(cx, max_bytes)?,
        })
    }
}

/// Returns the branch. The default is the live site, so an invalid or repeated header is an error and never ignored.
fn branch(cx: &Cx) -> Result<Branch> {
    let mut values = cx.headers.get_all(&DEPLOY_BRANCH).iter();
    let (first, second) = (values.next(), values.next());
    let Some(value) = first else {
        return Ok(Branch::production());
    };
    let branch = value
        .to_str()
        .ok()
        .and_then(|text| Branch::parse(text).ok());
    match (branch, second) {
        (Some(branch), None) => Ok(branch),
        _ => Err(Error::invalid(
            DEPLOY_BRANCH.as_str(),
            "pattern",
            format!("must be one text that matches {BRANCH_PATTERN}"),
        )),
    }
}

/// Returns the id of the user who deploys. A service may name the user for whom it deploys.
fn user(cx: &Cx) -> Result<String> {
    let told = match &*cx.caller {
        Caller::Service { .. } => cx.headers.get(&USER_ID),
        _ => None,
    };
    let Some(told) = told else {
        return Ok(cx.caller.actor_id().to_owned());
    };
    let id = told.to_str().ok().and_then(UserId::parse);
    match id {
        Some(id) => Ok(id.to_string()),
        None => Err(Error::invalid(
            USER_ID.as_str(),
            "pattern",
            "must be the id of a user",
        )),
    }
}

/// Returns the `Content-Length` of the body, or `max_bytes` without this header.
fn length(cx: &Cx, max_bytes: u64) -> Result<u64> {
    let Some(length) = cx.headers.get(header::CONTENT_LENGTH) else {
        return Ok(max_bytes);
    };
    let length: Option<u64> = length.to_str().ok().and_then(|text| text.parse().ok());
    match length {
        None => Err(Error::invalid(
            "content-length",
            "invalid_type",
            "must be a whole number",
        )),
        Some(length) if length > max_bytes => Err(Error::refused(
            Code::PayloadTooLarge,
            format!("The upload is larger than {max_bytes} bytes."),
        )),
        Some(length) => Ok(length),
    }
}
