//! The address itself.

use std::sync::Arc;

use core_domain::access::{PublicScope, authorize_session};
use core_domain::kernel::Result;

use super::layout;
use super::next::ACCOUNT;
use super::row::page;
use crate::iam::config::Iam;
use crate::kernel::{Cx, Endpoint, Input, PageOr, get, with};

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let row = page(get("/", "homePage")).summary("Sends people to their account, or to sign in.");
    vec![row.plain(with(iam, home))]
}

async fn home(cx: &Cx, iam: Arc<Iam>, _: PublicScope, _: Input) -> Result<PageOr> {
    let signed_in = authorize_session(cx).is_ok();
    let path = if signed_in { ACCOUNT } else { "/sign-in" };
    Ok(layout::to(&iam, path))
}
