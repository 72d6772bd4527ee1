//! Violations of a schema: which keyword a value violates, and at which path.

use serde_json::{Number, Value};

/// The violation of a keyword.
#[derive(Debug)]
pub(super) struct Violation<'s> {
    /// Field names and array positions, from the root of the value.
    pub(super) path: Vec<String>,
    pub(super) kind: Kind<'s>,
}

/// The violated keyword, with its value in the schema.
#[derive(Debug)]
pub(super) enum Kind<'s> {
    Type,
    Const(&'s Value),
    Enum(&'s [Value]),
    Minimum(&'s Number),
    Maximum(&'s Number),
    MinLength(u64),
    MaxLength(u64),
    Pattern(&'s str),
    Format(&'s str),
    MinItems(u64),
    MaxItems(u64),
    UniqueItems,
    MinProperties(u64),
    MaxProperties(u64),
    MaxBytes(u64),
    Required(&'s str),
    AdditionalProperties,
    /// No branch of `anyOf` or `oneOf` matches. Contains the violations of each branch.
    NoBranch(Vec<Vec<Violation<'s>>>),
    /// Several branches of `oneOf` match.
    SeveralBranches,
    /// The schema is `false`.
    Never,
}

/// A location in a value. It is a linked list on the stack, so that a valid value causes no allocation.
#[derive(Clone, Copy)]
pub(super) enum Location<'p> {
    Root,
    Field(&'p Location<'p>, &'p str),
    Item(&'p Location<'p>, usize),
}

impl Location<'_> {
    /// Returns the field names and array positions from the root.
    fn path(&self) -> Vec<String> {
        let (parent, last) = match self {
            Location::Root => return Vec::new(),
            Location::Field(parent, name) => (parent, (*name).to_owned()),
            Location::Item(parent, position) => (parent, position.to_string()),
        };
        let mut path = parent.path();
        path.push(last);
        path
    }
}

/// A collection of violations with a maximum size.
pub(super) struct Violations<'s> {
    pub(super) violations: Vec<Violation<'s>>,
    /// `true` if there was a violation, also if it was not collected.
    pub(super) any: bool,
    /// The maximum number of collected violations. With 0, only `any` is set.
    pub(super) most: usize,
}

impl<'s> Violations<'s> {
    /// Creates an empty collection for at most this number of violations.
    pub(super) const fn up_to(most: usize) -> Self {
        Self {
            violations: Vec::new(),
            any: false,
            most,
        }
    }

    /// Adds a violation, unless the maximum is reached.
    pub(super) fn add(&mut self, at: Location<'_>, kind: Kind<'s>) {
        self.any = true;
        if self.violations.len() < self.most {
            let path = at.path();
            self.violations.push(Violation { path, kind });
        }
    }

    /// Adds a violation if `fits` is `false`.
    pub(super) fn unless(&mut self, fits: bool, at: Location<'_>, kind: Kind<'s>) {
        if !fits {
            self.add(at, kind);
        }
    }

    /// Returns whether the maximum is reached, so that the validation can stop.
    pub(super) const fn is_full(&self) -> bool {
        self.any && self.violations.len() >= self.most
    }
}
