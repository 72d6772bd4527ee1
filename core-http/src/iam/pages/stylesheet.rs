//! How the pages look: one file, no build step.

use std::sync::LazyLock;

use core_domain::access::PublicScope;
use core_domain::kernel::Result;
use http::StatusCode;

use super::asset;
use crate::kernel::{Answer, AnswerKind, Cx, Endpoint, Input, Reply, get};

const PATH: &str = "/assets/iam.css";
const CSS: &str = "text/css; charset=utf-8";
const TEXT: &str = include_str!("iam.css");

static VERSION: LazyLock<String> = LazyLock::new(|| asset::version_of(TEXT));

pub(super) fn rows() -> Vec<Endpoint> {
    let row = get(PATH, "getStylesheet").summary("How the pages look.");
    vec![row.plain(stylesheet)]
}

/// The address in pages.
pub(super) fn path() -> String {
    format!("{PATH}?v={}", *VERSION)
}

struct Stylesheet;

impl Answer for Stylesheet {
    fn kind() -> AnswerKind {
        AnswerKind::other(Some(CSS)).with_etag()
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        asset::reply(default, CSS, TEXT, &VERSION)
    }
}

async fn stylesheet(_: &Cx, _: PublicScope, _: Input) -> Result<Stylesheet> {
    Ok(Stylesheet)
}
