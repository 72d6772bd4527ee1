//! The address itself.

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
    let row = page(get("/", "homePage")).summary("Sends people to their account, or to sign in.");
    vec![row.plain(with(iam, home))]
}

/// The query of the address.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct HomeQuery {
    /// The code of the reason why a mailed link did nothing: links without a target lead here.
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
        return Ok(layout::to(&iam, ACCOUNT));
    }
    let error = input.query.error.as_deref().map(|code| ("error", code));
    let path = with_parameters("/sign-in".to_owned(), error.as_slice());
    Ok(layout::to(&iam, &path))
}
