//! The HTML pages for people. They work without scripts; only passkeys need one. Forms are posted to the path of their
//! page, call the same use cases as the JSON routes, and redirect the browser with 303.

mod account;
mod api_keys;
mod confirm;
mod device;
mod error;
mod form;
mod form_errors;
mod home;
mod invitation;
mod layout;
mod magic_link;
mod next;
mod passkeys;
mod reset_password;
mod row;
mod script;
mod security;
mod sign_in;
mod sign_up;
mod stylesheet;
mod two_factor;
mod user_agent;
mod verify_email;

use std::sync::Arc;

pub(super) use error::HtmlErrorPages;

use super::config::Iam;
use crate::kernel::Endpoint;

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let parts = [
        home::rows(iam),
        stylesheet::rows(),
        script::rows(),
        sign_in::rows(iam),
        two_factor::rows(iam),
        sign_up::rows(iam),
        magic_link::rows(iam),
        reset_password::rows(iam),
        verify_email::rows(iam),
        invitation::rows(iam),
        device::rows(iam),
        account::rows(iam),
        confirm::rows(iam),
        security::rows(iam),
        api_keys::rows(iam),
        passkeys::rows(iam),
    ];
    parts.into_iter().flatten().collect()
}
