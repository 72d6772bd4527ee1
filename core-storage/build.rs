//! Generates the list of migrations from the files in `migrations/`. Fails if their names are invalid or a file is
//! missing.
//!
//! The test of upgrades builds the server of a later release: `CORE_STORAGE_LATER_MIGRATIONS` is a folder with more
//! migrations, and `CORE_STORAGE_LATER_RELEASE` the number of the release.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

#[path = "src/bin/write-migration/files.rs"]
mod files;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=migrations");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut list = String::from("&[\n");
    add_migrations(&mut list, &own)?;
    if let Some(folder) = variable("CORE_STORAGE_LATER_MIGRATIONS") {
        println!("cargo::rerun-if-changed={folder}");
        add_migrations(&mut list, Path::new(&folder))?;
    }
    list.push_str("]\n");
    let release = variable("CORE_STORAGE_LATER_RELEASE");
    let release = release.unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned());
    println!("cargo::rustc-env=CORE_STORAGE_RELEASE={release}");
    let out = std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    fs::write(Path::new(&out).join("migrations.rs"), list)?;
    Ok(())
}

fn variable(name: &str) -> Option<String> {
    println!("cargo::rerun-if-env-changed={name}");
    std::env::var_os(name)?.into_string().ok()
}

/// Adds the migrations of a folder to the list.
fn add_migrations(list: &mut String, folder: &Path) -> Result<(), Box<dyn Error>> {
    for name in files::migration_names(folder)? {
        writeln!(list, "Migration {{\n    name: {name:?},")?;
        for dialect in files::DIALECTS {
            let path = folder.join(dialect).join(format!("{name}.sql"));
            writeln!(list, "    {dialect}: include_str!({path:?}),")?;
        }
        list.push_str("},\n");
    }
    Ok(())
}
