//! The kinds a process knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::any_kind::{AnyKind, Registered};
use super::kind::JobKind;
use super::undo_kind::UndoKind;
use crate::kernel::Result;
use crate::provisioning::{is_undo_kind, undo_of};

/// Why kinds cannot be used together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KindError {
    /// Two kinds have one name.
    #[error("two kinds of jobs are called {0}")]
    DuplicateKind(String),
    /// The name ends as those of the kinds do that undo others.
    #[error("the name {0} is that of a kind that undoes another one")]
    ReservedName(&'static str),
    /// Two steps of a kind have one name.
    #[error("the kind {kind} has two steps called {step}")]
    DuplicateStep {
        /// The kind.
        kind: &'static str,
        /// The step.
        step: &'static str,
    },
}

/// The kinds a process knows, by name. Jobs of other kinds are left to processes that know them. Who knows a kind with
/// steps that can be undone knows the kind that undoes them as well.
#[derive(Clone, Debug, Default)]
pub struct Kinds(BTreeMap<String, Arc<dyn AnyKind>>);

impl Kinds {
    /// No kinds yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a kind.
    ///
    /// # Errors
    /// [`KindError`] when its name is taken or ends in `.undo`, or two of its steps have one name.
    pub fn with<K: JobKind>(self, kind: K) -> Result<Self, KindError> {
        if is_undo_kind(K::NAME) {
            return Err(KindError::ReservedName(K::NAME));
        }
        let steps = K::steps();
        let names = steps.names();
        let duplicate = names
            .iter()
            .enumerate()
            .find(|(i, name)| names[..*i].contains(name));
        if let Some((_, step)) = duplicate {
            return Err(KindError::DuplicateStep {
                kind: K::NAME,
                step,
            });
        }
        let undoes = steps.0.iter().any(|step| step.undoes());
        let registered = Arc::new(Registered { kind, steps });
        let all = self.add(K::NAME.to_owned(), registered.clone())?;
        if undoes {
            return all.add(undo_of(K::NAME), Arc::new(UndoKind(registered)));
        }
        Ok(all)
    }

    fn add(mut self, name: String, kind: Arc<dyn AnyKind>) -> Result<Self, KindError> {
        if self.knows(&name) {
            return Err(KindError::DuplicateKind(name));
        }
        self.0.insert(name, kind);
        Ok(self)
    }

    /// Tells whether the kind of this name is known.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&dyn AnyKind> {
        self.0.get(name).map(AsRef::as_ref)
    }

    /// All names.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}
