//! Whole-suite tests.
