//! What the headers of a deploy request say.

use core_domain::cli::{PRODUCTION, is_branch};
use core_domain::kernel::{Caller, Code, Error, Result, UserId};
use http::header;

use super::media::Media;
use crate::kernel::Cx;

/// The header that names the branch.
pub(super) const BRANCH: &str = "x-core-deploy-branch";

/// The header in which a service says for whom it deploys.
pub(super) const USER: &str = "x-core-user-id";

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
    let mut values = cx.headers.get_all(BRANCH).iter();
    let (first, second) = (values.next(), values.next());
    let Some(value) = first else {
        return Ok(PRODUCTION.to_owned());
    };
    let text = value.to_str().ok().filter(|text| is_branch(text));
    match (text, second) {
        (Some(branch), None) => Ok(branch.to_owned()),
        _ => Err(Error::invalid(
            BRANCH,
            "pattern",
            "must be one text that matches ^[A-Za-z0-9._/-]{1,255}$",
        )),
    }
}

/// Who deploys. A service may say for whom.
fn user(cx: &Cx) -> Result<String> {
    let told = match cx.caller {
        Caller::Service { .. } => cx.headers.get(USER),
        _ => None,
    };
    let Some(told) = told else {
        return Ok(cx.caller.actor_id().to_owned());
    };
    let id = told.to_str().ok().and_then(UserId::parse);
    match id {
        Some(id) => Ok(id.to_string()),
        None => Err(Error::invalid(USER, "pattern", "must be the id of a user")),
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
