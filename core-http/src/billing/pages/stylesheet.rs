//! The stylesheet of the pages: one file without a build step.

use std::sync::LazyLock;

use core_domain::access::PublicScope;
use core_domain::kernel::Result;

use crate::kernel::{Cx, Endpoint, Input, Stylesheet, get, version_of};

const PATH: &str = "/assets/billing.css";
/// The text of the stylesheet.
pub(super) const TEXT: &str = concat!(
    include_str!("../../kernel/answer/pages.css"),
    include_str!("billing.css")
);

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

async fn stylesheet(_: &Cx, _: PublicScope, _: Input) -> Result<Stylesheet> {
    Ok(Stylesheet {
        text: TEXT,
        version: &VERSION,
    })
}
