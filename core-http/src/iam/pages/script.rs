//! The only script of the pages. Passkeys need it, because browsers offer them only to scripts.

use std::sync::LazyLock;

use core_domain::access::PublicScope;
use core_domain::kernel::Result;
use http::StatusCode;
use maud::{Markup, html};

use crate::iam::config::Iam;
use crate::kernel::{
    Answer, AnswerKind, Cx, Endpoint, Input, JAVASCRIPT, Reply, asset_reply, get, version_of,
};

const PATH: &str = "/assets/passkeys.js";
const TEXT: &str = include_str!("passkeys.js");

static VERSION: LazyLock<String> = LazyLock::new(|| version_of(TEXT));

pub(super) fn rows() -> Vec<Endpoint> {
    let row = get(PATH, "getPasskeyScript")
        .summary("Returns the script for passkeys.")
        .description(
            "The pages load it with a version in the query, which changes with the content.",
        );
    vec![row.plain(script)]
}

/// Renders the script element. The policy of the page must allow it, see `layout::with_script`.
pub(super) fn element(iam: &Iam) -> Markup {
    let path = format!("{PATH}?v={}", *VERSION);
    html! { script defer src=(iam.path(&path)) {} }
}

struct Script;

impl Answer for Script {
    fn kind() -> AnswerKind {
        AnswerKind::other(Some(JAVASCRIPT)).with_etag()
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        Ok(asset_reply(default, JAVASCRIPT, TEXT, &VERSION))
    }
}

async fn script(_: &Cx, _: PublicScope, _: Input) -> Result<Script> {
    Ok(Script)
}
