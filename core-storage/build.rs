//! Generates the list of migrations from the files in `migrations/`. Fails if their names are invalid or a file is
//! missing.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

#[path = "src/bin/write-migration/files.rs"]
mod files;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=migrations");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut list = String::from("&[\n");
    for name in files::migration_names(&folder)? {
        writeln!(list, "Migration {{\n    name: {name:?},")?;
        for dialect in files::DIALECTS {
            let path = folder.join(dialect).join(format!("{name}.sql"));
            writeln!(list, "    {dialect}: include_str!({path:?}),")?;
        }
        list.push_str("},\n");
    }
    list.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    fs::write(Path::new(&out).join("migrations.rs"), list)?;
    Ok(())
}
