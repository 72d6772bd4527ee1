//! Tests that the written text leads to exactly the described schema in both dialects, and keeps the rows.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests do"
)]

mod changes;
mod files;
mod refusals;
mod support;
