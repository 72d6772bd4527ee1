//! The migration files: `<dialect>/NNNN_<name>.sql`, with the same names for every dialect. The build script also uses
//! this module.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The folder of each dialect.
pub(crate) const DIALECTS: [&str; 2] = ["sqlite", "postgres"];

/// Returns the names of all migrations without `.sql`, in the order in which they run.
///
/// # Errors
/// A message for the developer who added the files: a dialect lacks a file, two migrations have the same number, or a
/// name is invalid.
pub(crate) fn migration_names(folder: &Path) -> Result<Vec<String>, String> {
    let [first, second] = DIALECTS.map(|dialect| names_in(&folder.join(dialect)));
    let (first, second) = (first?, second?);
    for (dialect, names, others) in [
        (DIALECTS[0], &first, &second),
        (DIALECTS[1], &second, &first),
    ] {
        if let Some(missing) = others.difference(names).next() {
            return Err(format!(
                "{dialect}/{missing}.sql is missing: a migration must have a file for every dialect"
            ));
        }
    }
    let names: Vec<String> = first.into_iter().collect();
    if let Some(pair) = names.windows(2).find(|pair| pair[0][..4] == pair[1][..4]) {
        return Err(format!(
            "{} and {} have the same number: every migration needs a unique number",
            pair[0], pair[1]
        ));
    }
    Ok(names)
}

fn names_in(folder: &Path) -> Result<BTreeSet<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let file = entry.map_err(failed)?.file_name();
        let file = file.to_string_lossy();
        let name = file.strip_suffix(".sql").filter(|name| is_migration(name));
        let Some(name) = name else {
            return Err(format!(
                "{}: a migration must be named NNNN_name.sql, with lower-case letters, digits and _",
                folder.join(&*file).display()
            ));
        };
        names.insert(name.to_owned());
    }
    Ok(names)
}

fn is_migration(name: &str) -> bool {
    let Some((number, words)) = name.split_once('_') else {
        return false;
    };
    number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit()) && is_name(words)
}

/// Returns whether the text can follow the number in the name of a migration.
pub(crate) fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=60).contains(&text.len()) && text.bytes().all(allowed)
}
