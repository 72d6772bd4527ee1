//! The stack registry's use cases.
