//! The file with the cells of an installation.

use std::path::Path;

use core_suite::{CellOptions, Cells, Secret};
use serde::Deserialize;

use super::error::{ConfigError, option_error};
use super::options::Options;
use super::values::{Database, is_postgres};

/// The content of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// `true` if new platforms are also assigned to the database of the server. Default: `false`.
    #[serde(default)]
    home_takes_new_platforms: bool,
    /// The cells beside that database.
    #[serde(default, rename = "cell")]
    cells: Vec<Cell>,
}

/// A `[[cell]]` of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cell {
    name: String,
    database_url: String,
    database_direct_url: Option<String>,
    database_replica_url: Option<String>,
    /// `true` if new platforms are assigned to this cell, which is the default.
    #[serde(default = "yes")]
    takes_new_platforms: bool,
}

fn yes() -> bool {
    true
}

/// Reads the cells; none without a file.
pub(super) fn cells(options: &Options, home: &Database) -> Result<Cells, ConfigError> {
    let Some(path) = &options.cells else {
        return Ok(Cells::default());
    };
    if !matches!(home, Database::Postgres { .. }) {
        let problem = "need a Postgres database as their home: set database_url to it";
        return Err(option_error("cells", problem));
    }
    let file = read(path)?;
    let others = file.cells.into_iter().map(cell);
    Ok(Cells {
        home_takes_new_platforms: file.home_takes_new_platforms,
        others: others.collect::<Result<_, _>>()?,
    })
}

fn read(path: &Path) -> Result<File, ConfigError> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| option_error("cells", format!("{shown}: {error}")))?;
    toml::from_str(&text).map_err(|error| {
        // The error as a whole shows the line, which may contain a password.
        let before = error.span().map_or("", |span| &text[..span.start]);
        let line = before.lines().count().max(1);
        option_error(
            "cells",
            format!("{shown}, line {line}: {}", error.message()),
        )
    })
}

fn cell(cell: Cell) -> Result<CellOptions, ConfigError> {
    let url = |key: &str, url: String| {
        if is_postgres(&url) {
            return Ok(Secret::new(url));
        }
        let problem = format!("{key} of the cell {} must be postgres://..", cell.name);
        Err(option_error("cells", problem))
    };
    let optional =
        |key: &str, given: Option<String>| given.map(|given| url(key, given)).transpose();
    Ok(CellOptions {
        url: url("database_url", cell.database_url)?,
        direct_url: optional("database_direct_url", cell.database_direct_url)?,
        replica_url: optional("database_replica_url", cell.database_replica_url)?,
        takes_new_platforms: cell.takes_new_platforms,
        name: cell.name,
    })
}
