//! The queued mails, and the links and tokens in them.

use std::time::Duration;

use core_domain::access::RecordKey;
use core_domain::iam::{Verification, VerificationQuery};
use core_domain::kernel::{Caller, Stored};
use core_domain::port::{Mail, Mode, Within};
use core_domain::shared::{AuditQuery, OutboxQuery};
use core_domain::use_case::shared::{MAIL_TOPIC, queued_mail};
use serde_json::json;

use super::World;

impl World {
    /// Returns every queued mail that will be sent, oldest first.
    pub(crate) async fn mails(&self) -> Vec<Mail> {
        self.queued_mails().await.into_iter().flatten().collect()
    }

    /// Returns every queued mail, oldest first. `None` marks a mail that will be dropped.
    pub(crate) async fn queued_mails(&self) -> Vec<Option<Mail>> {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let now = uow.now().await.unwrap();
        let messages = uow.repositories(RecordKey::for_tests()).outbox_messages();
        let due = OutboxQuery::MailDueAt(now);
        let messages = messages.list(Within::Installation, &due, 10_000).await;
        let messages = messages.unwrap().into_iter();
        let mails = messages.filter(|message| message.topic == MAIL_TOPIC);
        mails
            .map(|message| queued_mail(&self.app.cipher, &message).unwrap())
            .collect()
    }

    /// Returns the number of stored link tokens for an address, of every purpose.
    pub(crate) async fn count_link_tokens(&self, email: &str) -> usize {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let tomorrow = uow.now().await.unwrap().plus(Duration::from_secs(86_400));
        let verifications = uow.repositories(RecordKey::for_tests()).verifications();
        let all = VerificationQuery::ExpiredAt(tomorrow);
        let all = verifications.list(Within::Installation, &all, 1_000);
        let of = |verification: &&Stored<Verification>| verification.email.as_str() == email;
        all.await.unwrap().iter().filter(of).count()
    }

    /// Returns the stored audit entries, outbox messages and link tokens as text.
    pub(crate) async fn everything_stored(&self) -> String {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let now = uow.now().await.unwrap();
        let entries = uow.repositories(RecordKey::for_tests()).audit_entries();
        let all = AuditQuery::default();
        let entries = entries
            .list(Within::Installation, &all, 1_000)
            .await
            .unwrap();
        let messages = uow.repositories(RecordKey::for_tests()).outbox_messages();
        let due = OutboxQuery::MailDueAt(now);
        let messages = messages
            .list(Within::Installation, &due, 1_000)
            .await
            .unwrap();
        let verifications = uow.repositories(RecordKey::for_tests()).verifications();
        let all = VerificationQuery::ExpiredAt(now.plus(Duration::from_secs(86_400)));
        let verifications = verifications.list(Within::Installation, &all, 1_000).await;
        assert!(!messages.is_empty());
        format!("{entries:?}{messages:?}{:?}", verifications.unwrap())
    }

    /// Returns the links in the mails to an address, newest last.
    async fn mailed_links(&self, to: &str) -> std::vec::IntoIter<String> {
        let mails = self.mails().await.into_iter();
        let links = mails.filter(|mail| mail.to.as_str() == to).map(|mail| {
            let link = mail.text.lines().find(|line| line.starts_with("http"));
            link.unwrap().to_owned()
        });
        links.collect::<Vec<_>>().into_iter()
    }

    /// Returns the link in the newest mail to an address.
    pub(crate) async fn mailed_link(&self, to: &str) -> String {
        self.mailed_links(to).await.next_back().unwrap()
    }

    /// Returns the token in the newest mail to an address that contains one.
    pub(crate) async fn mailed_token(&self, to: &str) -> String {
        let mut links = self.mailed_links(to).await;
        let link = links.rfind(|link| link.contains("token=")).unwrap();
        let (_, token) = link.split_once("token=").unwrap();
        token.split('&').next().unwrap().to_owned()
    }

    /// Returns the reference in the newest invitation mail to an address: `<id>.<secret>`.
    pub(crate) async fn mailed_invitation(&self, to: &str) -> String {
        let mut links = self.mailed_links(to).await;
        let link = links.rfind(|link| link.contains("/accept-invitation?"));
        let link = link.unwrap();
        let (_, name) = link.split_once("?id=").unwrap();
        name.to_owned()
    }

    /// Requests three links for an address and returns their tokens: to sign in, to set a new password, and to confirm
    /// the address. Advances the clock by a second after each request.
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
