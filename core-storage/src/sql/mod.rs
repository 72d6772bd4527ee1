//! SQL as text, the same for both databases, and the driver glue that runs it.

pub mod ddl;

pub(crate) mod driver;
pub(crate) mod migrations;
mod render;

pub(crate) use render::{
    Statement, count, delete, insert, rows_meant, select, sum, taken, update, walk,
};
