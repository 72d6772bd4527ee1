//! The stylesheet of the pages: one file without a build step.

use std::sync::LazyLock;

use core_domain::access::PublicScope;
use core_domain::kernel::Result;
use http::StatusCode;

use crate::kernel::{
    Answer, AnswerKind, CSS, Cx, Endpoint, Input, Reply, asset_reply, get, version_of,
};

const PATH: &str = "/assets/billing.css";
const TEXT: &str = include_str!("billing.css");

static VERSION: LazyLock<String> = LazyLock::new(|| version_of(TEXT));

pub(super) fn rows() -> Vec<Endpoint> {
    let row = get(PATH, "getBillingStylesheet")
        .summary("Returns the stylesheet of the pages of billing.")
        .description(
            "The pages load it with a version in the query, which changes with the content.",
        );
    vec![row.plain(stylesheet)]
}

/// Returns the path of the stylesheet with its version.
pub(super) fn path() -> String {
    format!("{PATH}?v={}", *VERSION)
}

struct Stylesheet;

impl Answer for Stylesheet {
    fn kind() -> AnswerKind {
        AnswerKind::other(Some(CSS)).with_etag()
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        Ok(asset_reply(default, CSS, TEXT, &VERSION))
    }
}

async fn stylesheet(_: &Cx, _: PublicScope, _: Input) -> Result<Stylesheet> {
    Ok(Stylesheet)
}
