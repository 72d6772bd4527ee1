//! The statements that open units of work.

use std::sync::Arc;

use core_domain::port::Mode;

use crate::sql::gate;
use crate::sql::postgres::{begin, now};

/// A transaction for single reads, each of which sees the newest state.
const SINGLE_READS: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY";

/// The statements that open the units of a store, one text for each mode.
///
/// A pooler may give each transaction another server connection, so settings of a session would reach other clients. The
/// texts then contain all settings, which end with the transaction.
#[derive(Debug)]
pub(super) struct Openings {
    /// `None`: single reads need no transaction.
    auto: Option<Arc<str>>,
    read: Option<Arc<str>>,
    write: Variants,
    read_committed: Variants,
}

/// The texts of a mode that writes.
#[derive(Debug)]
struct Variants {
    plain: Option<Arc<str>>,
    /// Also reads the time of the unit.
    with_now: Option<Arc<str>>,
    /// Also passes the gate.
    gated: Option<Arc<str>>,
    /// Also passes the gate and reads the time of the unit.
    gated_with_now: Option<Arc<str>>,
}

impl Openings {
    /// Creates the texts for a connection whose session has the settings.
    pub(super) fn of_session() -> Self {
        Self::new(None, "")
    }

    /// Creates the texts for a pooler of transactions. Single reads also run in a transaction, so that the settings apply
    /// to them.
    pub(super) fn of_pooler(settings: &[(String, String)]) -> Self {
        let settings = settings.iter();
        let settings = settings.map(|(name, value)| format!("; SET LOCAL {name} = {value}"));
        let settings: String = settings.collect();
        Self::new(Some(format!("{SINGLE_READS}{settings}").into()), &settings)
    }

    fn new(auto: Option<Arc<str>>, settings: &str) -> Self {
        let text = |mode, end: &str| Some(format!("{}{settings}{end}", begin(mode)?).into());
        let end_with_now = format!("; {}", now());
        let variants = |mode| Variants {
            plain: text(mode, ""),
            with_now: text(mode, &end_with_now),
            gated: text(mode, &format!("; {}", gate::pass())),
            gated_with_now: text(mode, &format!("; {}{end_with_now}", gate::pass())),
        };
        Self {
            auto,
            read: text(Mode::Read, ""),
            write: variants(Mode::Write),
            read_committed: variants(Mode::ReadCommitted),
        }
    }

    /// Returns the text that opens a unit; `None` if the unit has no transaction. `with_now` also reads the time of a
    /// writing unit in the same round trip.
    pub(super) fn of(&self, mode: Mode, with_now: bool) -> Option<Arc<str>> {
        let variants = match self.variants(mode) {
            Ok(variants) => variants,
            Err(text) => return text,
        };
        match with_now {
            true => variants.with_now.clone(),
            false => variants.plain.clone(),
        }
    }

    /// Like [`Openings::of`], for a unit that passes the gate if it writes.
    pub(super) fn of_gated(&self, mode: Mode, with_now: bool) -> Option<Arc<str>> {
        let variants = match self.variants(mode) {
            Ok(variants) => variants,
            Err(text) => return text,
        };
        match with_now {
            true => variants.gated_with_now.clone(),
            false => variants.gated.clone(),
        }
    }

    /// Returns the texts of a mode that writes, or else the text of the mode.
    fn variants(&self, mode: Mode) -> Result<&Variants, Option<Arc<str>>> {
        match mode {
            Mode::Auto => Err(self.auto.clone()),
            Mode::Read => Err(self.read.clone()),
            Mode::Write => Ok(&self.write),
            Mode::ReadCommitted => Ok(&self.read_committed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [Mode; 4] = [Mode::Auto, Mode::Read, Mode::Write, Mode::ReadCommitted];

    #[test]
    fn every_unit_behind_a_pooler_sets_its_settings_for_its_transaction_alone() {
        let settings = [("jit".to_owned(), "off".to_owned())];
        let openings = Openings::of_pooler(&settings);
        for mode in MODES {
            for with_now in [true, false] {
                let text = openings.of(mode, with_now).unwrap();
                assert!(text.starts_with("BEGIN ISOLATION LEVEL "), "{text}");
                assert!(text.contains("; SET LOCAL jit = off"), "{text}");
            }
        }
    }

    #[test]
    fn a_session_with_settings_needs_no_others() {
        let openings = Openings::of_session();
        assert_eq!(openings.of(Mode::Auto, false), None);
        for mode in MODES {
            let text = openings.of(mode, false);
            assert_eq!(text.as_deref(), begin(mode));
        }
        let with_now = openings.of(Mode::Write, true).unwrap();
        assert!(with_now.ends_with(now()), "{with_now}");
    }
}
