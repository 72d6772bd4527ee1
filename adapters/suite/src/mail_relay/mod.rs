//! Hands queued mails over, some at a time, on tokio.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Cipher, Context, Entropy};
use core_domain::port::{Mail, MailError, Mailer, Store};
use core_domain::use_case::shared::{ClaimedMail, MailFate, claim_mails, settle_mail};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::mail_options::MailOptions;

/// How often the outbox is looked at when nobody calls.
const POLL: Duration = Duration::from_secs(1);

/// How long mails under way may go on when the relay is asked to end.
const GRACE: Duration = Duration::from_secs(5);

/// Hands over until it is stopped. Dropped, it is cut off; what was under way comes again.
#[derive(Debug)]
pub(crate) struct MailRelayHandle {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl MailRelayHandle {
    /// Lets what is under way end, for five seconds at the most.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        // One that panicked has stopped as well.
        let _ = (&mut self.task).await;
    }
}

impl Drop for MailRelayHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the relay works with.
#[derive(Clone)]
pub(crate) struct MailRelay {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) mailer: Arc<dyn Mailer>,
    pub(crate) cipher: Cipher,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) wake: Arc<Notify>,
    pub(crate) options: MailOptions,
}

impl MailRelay {
    /// Starts on the current tokio runtime.
    pub(crate) fn start(self) -> MailRelayHandle {
        let (stop, stopped) = watch::channel(false);
        MailRelayHandle {
            stop,
            task: tokio::spawn(self.run(stopped)),
        }
    }

    async fn run(self, mut stopped: watch::Receiver<bool>) {
        let mut under_way = JoinSet::new();
        while !*stopped.borrow() {
            for claimed in self.claim(under_way.len()).await {
                under_way.spawn(self.clone().hand_over(claimed, stopped.clone()));
            }
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(POLL) => {}
                Some(_) = under_way.join_next() => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
            // Those that have ended meanwhile give their places to others.
            while under_way.try_join_next().is_some() {}
        }
        while under_way.join_next().await.is_some() {}
    }

    /// As many as there are places for beside those under way.
    async fn claim(&self, under_way: usize) -> Vec<ClaimedMail> {
        let under_way = u32::try_from(under_way).unwrap_or(u32::MAX);
        let free = self.options.concurrency.saturating_sub(under_way);
        let claimed = claim_mails(self.store.as_ref(), free).await;
        claimed.unwrap_or_else(|error| {
            tracing::warn!(?error, "queued mails could not be read");
            Vec::new()
        })
    }

    async fn hand_over(self, claimed: ClaimedMail, stopped: watch::Receiver<bool>) {
        let fate = tokio::select! {
            fate = self.fate(&claimed) => fate,
            () = long_after(stopped) => MailFate::Released,
        };
        let cx = Context::system(Arc::clone(&self.entropy));
        let settled = settle_mail(&cx, self.store.as_ref(), &claimed, &fate).await;
        if let Err(error) = settled {
            tracing::warn!(id = %claimed.id(), ?error, "what became of a mail could not be written down");
        }
    }

    async fn fate(&self, claimed: &ClaimedMail) -> MailFate {
        let id = claimed.id();
        let mail = claimed.mail(&self.cipher);
        if claimed.has_expired() {
            let to = mail.ok().map(|mail| mail.to);
            tracing::warn!(%id, to = to.as_ref().map(AsRef::<str>::as_ref), "a mail was given up: nobody took it in time");
            return MailFate::Expired(to);
        }
        match mail {
            Ok(mail) => self.sent(claimed, mail).await,
            Err(error) => {
                // Another node may have the key.
                tracing::warn!(%id, ?error, "a queued mail cannot be read");
                MailFate::PutOff
            }
        }
    }

    async fn sent(&self, claimed: &ClaimedMail, mail: Mail) -> MailFate {
        let (id, to, attempt) = (claimed.id(), &mail.to, claimed.attempt());
        let sending = self.mailer.send(id, &mail);
        match tokio::time::timeout(self.options.timeout, sending).await {
            Ok(Ok(())) => MailFate::Sent,
            Ok(Err(MailError::Permanent(cause))) => {
                tracing::warn!(%id, %to, attempt, %cause, "a mail was refused, and is dropped");
                MailFate::Refused(mail.to)
            }
            Ok(Err(MailError::Transient(cause))) => {
                tracing::info!(%id, %to, attempt, %cause, "a mail was not taken, and comes again");
                MailFate::PutOff
            }
            Ok(Err(error)) => {
                tracing::warn!(%id, %to, attempt, ?error, "a mail was not taken, and comes again");
                MailFate::PutOff
            }
            Err(_) => {
                tracing::warn!(%id, %to, attempt, "a mail was not taken in time, and comes again");
                MailFate::PutOff
            }
        }
    }
}

/// Returns when the relay was asked to end some time ago.
async fn long_after(mut stopped: watch::Receiver<bool>) {
    // A channel that is closed: whoever would ask is gone.
    let _ = stopped.wait_for(|stopped| *stopped).await;
    tokio::time::sleep(GRACE).await;
}

#[cfg(test)]
mod tests;
