//! SQL as text, the same for both databases, and the unit of work that runs it on a driver.

pub mod ddl;

pub(crate) mod driver;
pub(crate) mod migrations;
mod render;

pub(crate) use render::{
    Statement, count, count_unique_conflicts, delete, insert, select, select_matching, sum, update,
    walk,
};
