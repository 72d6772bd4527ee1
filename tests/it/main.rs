//! Whole-suite tests: what no single crate can say about itself.

mod architecture;
mod jobs;
