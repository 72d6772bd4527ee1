//! The mails that wait to be sent.

use core_domain::access::RecordKey;
use core_domain::kernel::Caller;
use core_domain::port::{Mail, Mode, Within};
use core_domain::shared::OutboxQuery;
use core_domain::use_case::shared::{MAIL_TOPIC, queued_mail};
use serde_json::json;

use super::World;

impl World {
    /// Every mail that waits, oldest first.
    pub(crate) async fn mails(&self) -> Vec<Mail> {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let now = uow.now().await.unwrap();
        let messages = uow.repositories(RecordKey::for_tests()).outbox_messages();
        let due = OutboxQuery::MailDueAt(now);
        let messages = messages.list(Within::Installation, &due, 100).await;
        let messages = messages.unwrap().into_iter();
        let mails = messages.filter(|message| message.topic == MAIL_TOPIC);
        mails
            .map(|message| queued_mail(&self.app.cipher, &message).unwrap())
            .collect()
    }

    /// The link in the last mail to an address.
    pub(crate) async fn mailed_link(&self, to: &str) -> String {
        let mut mails = self.mails().await.into_iter();
        let mail = mails.rfind(|mail| mail.to.as_str() == to).unwrap();
        let link = mail.text.lines().find(|line| line.starts_with("http"));
        link.unwrap().to_owned()
    }

    /// The token in the last mail to an address.
    pub(crate) async fn mailed_token(&self, to: &str) -> String {
        let link = self.mailed_link(to).await;
        let (_, token) = link.split_once("token=").unwrap();
        token.split('&').next().unwrap().to_owned()
    }

    /// Tokens that were sent to an address: to sign in, for a new password, to confirm the address. Time passes.
    pub(crate) async fn link_tokens(&self, email: &str) -> [String; 3] {
        let mut tokens = Vec::new();
        for path in [
            "sign-in/magic-link",
            "request-password-reset",
            "send-verification-email",
        ] {
            let path = format!("/api/auth/{path}");
            let sent = self
                .iam
                .post(&Caller::Anonymous, &path, json!({ "email": email }))
                .await;
            let _ = sent.expect(200);
            self.tick(1);
            tokens.push(self.mailed_token(email).await);
        }
        tokens.try_into().unwrap()
    }
}
