//! Telling the owner of an account by mail what has happened to it, in the unit of work in which it does.

use super::mail::{self, Notice};
use crate::iam::User;
use crate::kernel::{Cipher, Context, Result};
use crate::port::UnitOfWork;
use crate::use_case::shared::queue_mail;

/// How owners are told.
#[derive(Clone, Copy)]
pub struct Notices<'a> {
    /// The address of the page that shows owners what can act for them, and ends it.
    pub page: &'a str,
    /// The cipher of the installation, which encrypts the mail in the outbox.
    pub cipher: &'a Cipher,
}

impl std::fmt::Debug for Notices<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notices(..)")
    }
}

impl Notices<'_> {
    /// Tells the owner.
    pub(in crate::use_case::iam) async fn tell(
        self,
        cx: &Context,
        uow: &mut dyn UnitOfWork,
        owner: &User,
        notice: Notice,
    ) -> Result<()> {
        let mail = mail::notice(notice, &owner.email, self.page);
        queue_mail(cx, uow, self.cipher, &mail).await
    }
}
