//! Code that the whole-suite tests in `it/` and the benchmarks share.

use std::process::Command;

/// Returns a command that runs cargo in the workspace, without the variables that cargo sets for the programs it runs.
/// Build scripts that read them would run again, and everything that depends on them would be compiled again.
#[must_use]
pub fn cargo() -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let is_of_cargo = |name: &str| {
        let of_package = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CFG_"];
        let others = ["CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"];
        of_package.iter().any(|start| name.starts_with(start)) || others.contains(&name)
    };
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_cargo) {
            command.env_remove(name);
        }
    }
    command
}
