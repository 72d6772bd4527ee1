//! State machines: one list of moves, from which events, transition function, audit actions, the table in the
//! documentation and the property test come.

use std::fmt::Debug;

use super::{Error, TextValue};

/// A move of a state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move<E: 'static, S: 'static> {
    /// What makes it.
    pub event: E,
    /// The statuses it can be made from.
    pub from: &'static [S],
    /// The status it leads to.
    pub to: S,
    /// What the audit calls it.
    pub action: &'static str,
}

/// The events of a state machine. Declared with `state_machine!`, so that every event has
/// exactly one move.
pub trait Machine: Copy + Debug + PartialEq + TextValue + 'static {
    /// The statuses.
    type Status: Copy + Debug + PartialEq + TextValue + 'static;

    /// Every move, in the order of declaration.
    const MOVES: &'static [Move<Self, Self::Status>];

    /// The move of this event.
    fn of_event(self) -> &'static Move<Self, Self::Status>;

    /// The status after this event. Total: whatever the status, there is an answer.
    ///
    /// # Errors
    /// [`IllegalMove`] when the event cannot happen in the status.
    fn next(self, from: Self::Status) -> Result<Self::Status, IllegalMove> {
        let of_event = self.of_event();
        if of_event.from.contains(&from) {
            Ok(of_event.to)
        } else {
            Err(IllegalMove::new(from, of_event.from.iter().copied()))
        }
    }

    /// The event that leads from one status to another; `None` when they are the same.
    ///
    /// # Errors
    /// [`IllegalMove`] names the statuses from which the wanted one can be reached.
    fn between(from: Self::Status, to: Self::Status) -> Result<Option<Self>, IllegalMove> {
        if from == to {
            return Ok(None);
        }
        let mut leading = Self::MOVES.iter().filter(|m| m.to == to);
        match leading.clone().find(|m| m.from.contains(&from)) {
            Some(found) => Ok(Some(found.event)),
            None => {
                let sources = leading.by_ref().flat_map(|m| m.from.iter().copied());
                Err(IllegalMove::new(from, sources))
            }
        }
    }
}

/// An event that cannot happen in a status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this cannot happen while the status is {status}")]
pub struct IllegalMove {
    /// The status.
    pub status: String,
    /// The statuses in which it can.
    pub allowed_from: Vec<String>,
}

impl IllegalMove {
    /// The refusal of an event that can happen in the statuses given.
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

impl From<IllegalMove> for Error {
    fn from(illegal: IllegalMove) -> Self {
        Self::InvalidState {
            status: illegal.status,
            allowed_from: illegal.allowed_from,
        }
    }
}

/// Declares a state machine over a set of statuses. An event whose word is what the audit calls it has no word besides:
///
/// ```ignore
/// state_machine! {
///     /// What happens to an entity. It is created `active`.
///     pub enum EntityEvent moves EntityStatus {
///         /// It is taken out of use.
///         Suspend = "suspend": [Active] => Suspended, "entity.suspended";
///     }
/// }
/// ```
macro_rules! state_machine {
    (
        $(#[$meta:meta])*
        pub enum $event:ident moves $status:ident {
            $($(#[$vmeta:meta])* $variant:ident = $text:literal: [$($from:ident),+] => $to:ident $(, $action:literal)?;)+
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
            pub enum $event { $($(#[$vmeta])* $variant = $text),+ }
        }

        impl $crate::kernel::Machine for $event {
            type Status = $status;

            const MOVES: &'static [$crate::kernel::Move<Self, $status>] = &[$($crate::kernel::Move {
                event: Self::$variant,
                from: &[$($status::$from),+],
                to: $status::$to,
                action: $crate::kernel::state_machine!(@action $text $(, $action)?),
            }),+];

            fn of_event(self) -> &'static $crate::kernel::Move<Self, $status> {
                // Variants are declared in the order of the moves, so an event's number is that of its move.
                &<Self as $crate::kernel::Machine>::MOVES[self as usize]
            }
        }
    };
    (@action $text:literal) => { $text };
    (@action $text:literal, $action:literal) => { $action };
}
pub(crate) use state_machine;

/// The property every machine has, for the test of one: any sequence of events makes the moves of the table and no other.
#[cfg(test)]
pub(crate) fn assert_only_table_moves<E: Machine>(start: E::Status, events: &[E]) {
    let mut status = start;
    for event in events {
        let row = E::MOVES.iter().find(|m| m.event == *event).unwrap();
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
