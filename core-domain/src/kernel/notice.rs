//! Notices between the processes of an installation: effects of commits, and their form in a message.

use std::collections::BTreeSet;

use super::{Effect, Entropy, secret_token};

/// The maximum number of effects that wait to be sent or received. More become one [`Notice::Missed`].
const MAX_WAITING_EFFECTS: usize = 1_024;

/// The length of the name of a process. It has more than 120 random bits.
const PROCESS_NAME_LENGTH: usize = 22;

/// The text form of [`Notice::Missed`] in a message.
const MISSED: &str = "*";

/// A notice from another process of the installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Another process has committed a unit of work with this effect, or may have committed it.
    Effect(Effect),
    /// Notices may have been lost, or one could not be read. Receivers must treat everything as changed.
    Missed,
}

/// The random name of a process, by which it recognizes its own notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessName(String);

impl ProcessName {
    /// Generates the name of a process that starts.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        Self(secret_token(entropy, PROCESS_NAME_LENGTH))
    }
}

/// Notices without duplicates, in no particular order. Their number is limited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticeSet {
    /// Empty if notices were missed, because that includes every effect.
    effects: BTreeSet<Effect>,
    has_missed: bool,
}

impl NoticeSet {
    /// Creates a set that contains only [`Notice::Missed`].
    #[must_use]
    pub fn only_missed() -> Self {
        Self {
            effects: BTreeSet::new(),
            has_missed: true,
        }
    }

    /// Returns whether there are no notices.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty() && !self.has_missed
    }

    /// Adds a notice. If there are too many effects, [`Notice::Missed`] replaces all of them.
    pub fn insert(&mut self, notice: Notice) {
        match notice {
            Notice::Effect(_) if self.has_missed => {}
            Notice::Effect(effect) => {
                self.effects.insert(effect);
                if self.effects.len() > MAX_WAITING_EFFECTS {
                    *self = Self::only_missed();
                }
            }
            Notice::Missed => *self = Self::only_missed(),
        }
    }

    /// Removes a notice and returns it; `None` if there are none.
    pub fn pop(&mut self) -> Option<Notice> {
        if self.has_missed {
            self.has_missed = false;
            return Some(Notice::Missed);
        }
        self.effects.pop_first().map(Notice::Effect)
    }

    /// Encodes the notices as messages of at most `max_bytes` each. A message has one notice at least, which needs less
    /// than 200 bytes. It consists of letters, digits, spaces and the characters `_.:*-`.
    #[must_use]
    pub fn to_messages(&self, sender: &ProcessName, max_bytes: usize) -> Vec<String> {
        let mut messages = Vec::new();
        let mut message = sender.0.clone();
        for text in self.texts() {
            let has_notice = message.len() > sender.0.len();
            if has_notice && message.len() + 1 + text.len() > max_bytes {
                messages.push(std::mem::replace(&mut message, sender.0.clone()));
            }
            message.push(' ');
            message.push_str(&text);
        }
        if message.len() > sender.0.len() {
            messages.push(message);
        }
        messages
    }

    /// Adds the notices of a message, unless `receiver` has sent it. A text that cannot be read, which a newer version
    /// may have sent, is [`Notice::Missed`].
    pub fn insert_message(&mut self, message: &str, receiver: &ProcessName) {
        let (sender, notices) = message.split_once(' ').unwrap_or((message, ""));
        if sender == receiver.0 {
            return;
        }
        self.insert_text(notices);
    }

    /// Encodes the notices as one text of at most `max_bytes`, without a sender. The text of more notices is that of
    /// [`Notice::Missed`]. It consists of letters, digits, spaces and the characters `_.:*-`.
    #[must_use]
    pub fn to_text(&self, max_bytes: usize) -> String {
        let text = self.texts().collect::<Vec<_>>().join(" ");
        if text.len() > max_bytes {
            return MISSED.to_owned();
        }
        text
    }

    /// Adds the notices of a text, like [`Self::insert_message`].
    pub fn insert_text(&mut self, notices: &str) {
        for text in notices.split(' ') {
            let effect = Effect::from_text(text);
            self.insert(effect.map_or(Notice::Missed, Notice::Effect));
        }
    }

    fn texts(&self) -> impl Iterator<Item = String> {
        let missed = self.has_missed.then(|| MISSED.to_owned());
        missed
            .into_iter()
            .chain(self.effects.iter().map(Effect::to_text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::SessionId;
    use crate::testing::SeededEntropy;

    fn process(seed: u64) -> ProcessName {
        ProcessName::generate(&SeededEntropy::new(seed))
    }

    fn session(number: usize) -> Notice {
        let id = SessionId::parse(&format!("s-{number}")).unwrap();
        Notice::Effect(Effect::SessionChanged(id))
    }

    fn of(notices: impl IntoIterator<Item = Notice>) -> NoticeSet {
        let mut set = NoticeSet::default();
        notices.into_iter().for_each(|notice| set.insert(notice));
        set
    }

    proptest! {
        #[test]
        fn notices_arrive_at_other_processes_in_short_messages(
            effects in btree_set(any::<Effect>(), 0..60), max_bytes in 200_usize..2_000,
        ) {
            let sent = of(effects.into_iter().map(Notice::Effect));
            let messages = sent.to_messages(&process(1), max_bytes);
            prop_assert_eq!(messages.is_empty(), sent.is_empty());
            let (mut own, mut received) = (NoticeSet::default(), NoticeSet::default());
            for message in &messages {
                prop_assert!(message.len() <= max_bytes);
                prop_assert!(!message.contains(['\'', '\\']));
                own.insert_message(message, &process(1));
                received.insert_message(message, &process(2));
            }
            prop_assert!(own.is_empty());
            prop_assert_eq!(received, sent);
        }

        #[test]
        fn notices_are_one_text_or_everything_if_they_do_not_fit(
            effects in btree_set(any::<Effect>(), 1..20), max_bytes in 1_usize..2_000,
        ) {
            let sent = of(effects.into_iter().map(Notice::Effect));
            let text = sent.to_text(max_bytes);
            prop_assert!(text.len() <= max_bytes);
            let mut received = NoticeSet::default();
            received.insert_text(&text);
            let fits = sent.to_text(usize::MAX).len() <= max_bytes;
            prop_assert_eq!(received, if fits { sent } else { NoticeSet::only_missed() });
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,200}") {
            let mut received = NoticeSet::default();
            received.insert_message(&text, &process(1));
            prop_assert!(!received.is_empty());
        }
    }

    #[test]
    fn texts_of_a_newer_version_mean_that_everything_may_have_changed() {
        for message in [
            "",
            "other",
            "other ",
            "other future:1",
            "other session:1 future",
        ] {
            let mut received = NoticeSet::default();
            received.insert_message(message, &process(1));
            assert_eq!(received, NoticeSet::only_missed(), "{message:?}");
        }
    }

    #[test]
    fn too_many_effects_become_one_notice() {
        let mut set = of((0..MAX_WAITING_EFFECTS).map(session));
        assert_eq!(set.effects.len(), MAX_WAITING_EFFECTS);
        set.insert(session(MAX_WAITING_EFFECTS));
        assert_eq!(set, NoticeSet::only_missed());
        set.insert(session(0));
        assert_eq!(set.to_messages(&process(1), 200).len(), 1);
        assert_eq!(set.pop(), Some(Notice::Missed));
        assert_eq!(set.pop(), None);
        set.insert(session(0));
        assert_eq!(set.pop(), Some(session(0)));
    }
}
