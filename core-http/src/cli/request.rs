//! What the headers of a deploy request say.

use core_domain::cli::{BRANCH_PATTERN, PRODUCTION, is_branch};
use core_domain::kernel::{Caller, Code, Error, Result, UserId};
use http::header;

use super::media::Media;
use crate::kernel::Cx;
use crate::kernel::header_names::{DEPLOY_BRANCH, USER_ID};

/// A deploy request but for its body.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) key: Option<String>,
    pub(super) branch: String,
    pub(super) user_id: String,
    pub(super) media: Media,
}

impl Asked {
    /// Reads the headers; refuses what is too large already by its own word.
    pub(super) fn of(cx: &Cx, most_bytes: u64) -> Result<Self> {
        let asked = Self {
            key: cx.idempotency_key()?.map(str::to_owned),
            branch: branch(cx)?,
            user_id: user(cx)?,
            media: Media::of(&cx.headers)?,
        };
        check_length(cx, most_bytes)?;
        Ok(asked)
    }
}

/// The default is live, so a header that says nothing clear is never taken for none.
fn branch(cx: &Cx) -> Result<String> {
    let mut values = cx.headers.get_all(DEPLOY_BRANCH).iter();
    let (first, second) = (values.next(), values.next());
    let Some(value) = first else {
        return Ok(PRODUCTION.to_owned());
    };
    let text = value.to_str().ok().filter(|text| is_branch(text));
    match (text, second) {
        (Some(branch), None) => Ok(branch.to_owned()),
        _ => Err(Error::invalid(
            DEPLOY_BRANCH,
            "pattern",
            format!("must be one text that matches {BRANCH_PATTERN}"),
        )),
    }
}

/// Who deploys. A service may say for whom.
fn user(cx: &Cx) -> Result<String> {
    let told = match cx.caller {
        Caller::Service { .. } => cx.headers.get(USER_ID),
        _ => None,
    };
    let Some(told) = told else {
        return Ok(cx.caller.actor_id().to_owned());
    };
    let id = told.to_str().ok().and_then(UserId::parse);
    match id {
        Some(id) => Ok(id.to_string()),
        None => Err(Error::invalid(
            USER_ID,
            "pattern",
            "must be the id of a user",
        )),
    }
}

fn check_length(cx: &Cx, most_bytes: u64) -> Result<()> {
    let Some(length) = cx.headers.get(header::CONTENT_LENGTH) else {
        return Ok(());
    };
    let length: Option<u64> = length.to_str().ok().and_then(|text| text.parse().ok());
    match length {
        None => Err(Error::invalid(
            "content-length",
            "invalid_type",
            "must be a whole number",
        )),
        Some(length) if length > most_bytes => Err(Error::refused(
            Code::PayloadTooLarge,
            format!("The upload is larger than {most_bytes} bytes."),
        )),
        Some(_) => Ok(()),
    }
}
