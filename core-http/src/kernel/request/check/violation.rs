//! What a value breaks of a schema, and where.

use serde_json::{Number, Value};

/// A keyword that a value does not fit.
#[derive(Debug)]
pub(super) struct Violation<'s> {
    pub(super) path: Vec<String>,
    pub(super) kind: Kind<'s>,
}

/// The keyword, with what it demands.
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
    /// What each branch says against the value.
    NoBranch(Vec<Vec<Violation<'s>>>),
    SeveralBranches,
    Never,
}

/// A location in a value: a list on the stack, so that a good value costs no allocation.
#[derive(Clone, Copy)]
pub(super) enum Location<'p> {
    Root,
    Field(&'p Location<'p>, &'p str),
    Item(&'p Location<'p>, usize),
}

impl Location<'_> {
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

/// The violations found so far. With `most` of 0 none is kept, only whether there is one.
pub(super) struct Found<'s> {
    pub(super) violations: Vec<Violation<'s>>,
    pub(super) any: bool,
    pub(super) most: usize,
}

impl<'s> Found<'s> {
    pub(super) const fn up_to(most: usize) -> Self {
        Self {
            violations: Vec::new(),
            any: false,
            most,
        }
    }

    /// Takes a violation.
    pub(super) fn add(&mut self, at: Location<'_>, kind: Kind<'s>) {
        self.any = true;
        if self.violations.len() < self.most {
            let path = at.path();
            self.violations.push(Violation { path, kind });
        }
    }

    /// Takes a violation unless the value fits.
    pub(super) fn unless(&mut self, fits: bool, at: Location<'_>, kind: Kind<'s>) {
        if !fits {
            self.add(at, kind);
        }
    }

    /// Nothing more needs to be looked at.
    pub(super) const fn is_full(&self) -> bool {
        self.any && self.violations.len() >= self.most
    }
}
