//! State machines: one list of transitions per machine. The events, the transition function, the audit actions, the
//! table in the documentation and the property test are derived from it.

use std::fmt::Debug;

use super::{Error, TextValue};

/// One transition of a state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition<E: 'static, S: 'static> {
    /// The event that causes the transition.
    pub event: E,
    /// The statuses from which the transition is allowed.
    pub from: &'static [S],
    /// The status after the transition.
    pub to: S,
    /// The name of the transition in the audit log.
    pub action: &'static str,
}

/// The events of a state machine. Declare them with `state_machine!`, which gives every event exactly one transition.
pub trait Machine: Copy + Debug + PartialEq + TextValue + 'static {
    /// The statuses of the machine.
    type Status: Copy + Debug + PartialEq + TextValue + 'static;

    /// All transitions in the order of declaration.
    const TRANSITIONS: &'static [Transition<Self, Self::Status>];

    /// Returns the transition of this event.
    fn transition(self) -> &'static Transition<Self, Self::Status>;

    /// Returns the status after this event. The function is total: it returns a result for every status.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the status does not allow the event.
    fn next(self, from: Self::Status) -> Result<Self::Status, IllegalTransition> {
        let transition = self.transition();
        if transition.from.contains(&from) {
            Ok(transition.to)
        } else {
            Err(IllegalTransition::new(
                from,
                transition.from.iter().copied(),
            ))
        }
    }

    /// Returns the event that leads from one status to another; `None` if both are the same.
    ///
    /// # Errors
    /// [`IllegalTransition`] if no event does; it lists the statuses from which `to` can be reached.
    fn between(from: Self::Status, to: Self::Status) -> Result<Option<Self>, IllegalTransition> {
        if from == to {
            return Ok(None);
        }
        let mut leading = Self::TRANSITIONS.iter().filter(|m| m.to == to);
        match leading.clone().find(|m| m.from.contains(&from)) {
            Some(found) => Ok(Some(found.event)),
            None => {
                let sources = leading.by_ref().flat_map(|m| m.from.iter().copied());
                Err(IllegalTransition::new(from, sources))
            }
        }
    }
}

/// An event that the current status does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this cannot happen while the status is {status}")]
pub struct IllegalTransition {
    /// The current status.
    pub status: String,
    /// The statuses that allow the event.
    pub allowed_from: Vec<String>,
}

impl IllegalTransition {
    /// Creates the error for an event that only the given statuses allow.
    pub fn new<S: TextValue>(status: S, allowed_from: impl IntoIterator<Item = S>) -> Self {
        let mut words: Vec<String> = Vec::new();
        for status in allowed_from {
            if !words.iter().any(|word| word == status.as_text()) {
                words.push(status.as_text().to_owned());
            }
        }
        Self {
            status: status.as_text().to_owned(),
            allowed_from: words,
        }
    }
}

impl From<IllegalTransition> for Error {
    fn from(illegal: IllegalTransition) -> Self {
        Self::InvalidState {
            status: illegal.status,
            allowed_from: illegal.allowed_from,
        }
    }
}

/// Declares a state machine for a status type. Give an audit action only if it differs from the name of the event:
///
/// ```ignore
/// state_machine! {
///     /// The events of an entity. A new entity is `active`.
///     pub enum EntityEvent moves EntityStatus {
///         /// Takes the entity out of use.
///         Suspend = "suspend": [Active] => Suspended, "entity.suspended";
///     }
/// }
/// ```
macro_rules! state_machine {
    (
        $(#[$meta:meta])*
        pub enum $event:ident moves $status:ident {
            $($(#[doc = $doc:literal])* $variant:ident = $text:literal: [$($from:ident),+] => $to:ident $(, $action:literal)?;)+
        }
    ) => {
        $crate::kernel::text_enum! {
            $(#[$meta])*
            ///
            /// | event | from | to | audit |
            /// |---|---|---|---|
            $(#[doc = concat!(
                "| `", $text, "` |", $(" `", stringify!($from), "`",)+ " | `", stringify!($to), "` | `",
                $crate::kernel::state_machine!(@action $text $(, $action)?), "` |"
            )])+
            pub enum $event { $($(#[doc = $doc])* $variant = $text),+ }
        }

        impl $crate::kernel::Machine for $event {
            type Status = $status;

            const TRANSITIONS: &'static [$crate::kernel::Transition<Self, $status>] = &[$($crate::kernel::Transition {
                event: Self::$variant,
                from: &[$($status::$from),+],
                to: $status::$to,
                action: $crate::kernel::state_machine!(@action $text $(, $action)?),
            }),+];

            fn transition(self) -> &'static $crate::kernel::Transition<Self, $status> {
                // Variants and transitions have the same order, so the number of an event is that of its transition.
                &<Self as $crate::kernel::Machine>::TRANSITIONS[self as usize]
            }
        }
    };
    (@action $text:literal) => { $text };
    (@action $text:literal, $action:literal) => { $action };
}
pub(crate) use state_machine;

/// Asserts the property that every machine has: any sequence of events makes the transitions of the table and no
/// others. Call it from the property test of a machine.
#[cfg(test)]
pub(crate) fn assert_only_table_moves<E: Machine>(start: E::Status, events: &[E]) {
    let mut status = start;
    for event in events {
        let row = E::TRANSITIONS.iter().find(|m| m.event == *event).unwrap();
        match event.next(status) {
            Ok(next) => {
                assert!(row.from.contains(&status), "{event:?} from {status:?}");
                assert_eq!(next, row.to);
                status = next;
            }
            Err(illegal) => {
                assert!(!row.from.contains(&status), "{event:?} from {status:?}");
                assert_eq!(illegal.status, status.as_text());
            }
        }
    }
}
