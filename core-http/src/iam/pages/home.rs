//! The page at the root of the public URL.

use std::sync::Arc;

use core_domain::access::{PublicScope, authorize_session};
use core_domain::kernel::Result;
use schemars::JsonSchema;
use serde::Deserialize;

use super::layout;
use super::next::ACCOUNT;
use super::row::page;
use crate::iam::config::{Iam, with_parameters};
use crate::kernel::{Cx, Endpoint, Input, PageOr, get, with};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let row = page(get("/", "homePage"))
        .summary("Redirects to the account page or the sign-in page.")
        .description(
            "Redirects signed-in callers to their account, all others to the sign-in page. An \
             `error` in the query is passed on to the sign-in page.",
        );
    vec![row.plain(with(iam, home))]
}

/// The query of the root page.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct HomeQuery {
    /// The code of a refused mailed link. Links without a target redirect here. Default: none.
    #[schemars(length(max = 64), regex(pattern = r"^[^\u0000]*$"))]
    error: Option<String>,
}

async fn home(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), HomeQuery>,
) -> Result<PageOr> {
    if authorize_session(cx).is_ok() {
        return Ok(layout::redirect(&iam, ACCOUNT));
    }
    let error = input.query.error.as_deref().map(|code| ("error", code));
    let path = with_parameters("/sign-in".to_owned(), error.as_slice());
    Ok(layout::redirect(&iam, &path))
}
