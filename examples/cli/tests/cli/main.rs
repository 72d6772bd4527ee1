//! Tests of the program as a process, against a server that fails on purpose.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

// The tree of commands and options is that of the program, so that a test fails if an option has no case.
#[expect(dead_code, reason = "only the tree of the commands is used")]
#[path = "../../src/args.rs"]
mod args;
mod bad_input;
mod commands;
mod deploying;
#[path = "../../../../core-client/tests/it/fake.rs"]
mod fake;
#[expect(dead_code, reason = "only the parsers of the commands are used")]
#[path = "../../src/inputs.rs"]
mod inputs;
mod program;
mod sign_in;
