//! The machine and the software versions of a measurement.

use std::fs;
use std::process::Command;

use core_domain::kernel::Clock;
use core_suite::SystemClock;

/// Returns one line for each property.
pub(crate) fn lines() -> Vec<String> {
    // All cores, because this process is bound to one of them.
    let cores = output("nproc", &["--all"]);
    vec![
        format!("Date: {}", SystemClock.now()),
        format!(
            "Commit: {}",
            output("git", &["describe", "--always", "--dirty"])
        ),
        format!("Machine: {}, {cores} cores", processor()),
        format!("Kernel: {}", output("uname", &["-sr"])),
        format!("Compiler: {}", output("rustc", &["--version"])),
        format!("SQLite: {}", locked_version("libsqlite3-sys")),
        format!("Postgres: {}", postgres()),
    ]
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match text {
        Ok(text) if !text.is_empty() => text,
        _ => "unknown".to_owned(),
    }
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.and_then(|model| model.split_once(": "));
    model.map_or("unknown", |(_, model)| model).to_owned()
}

/// Returns the version of a crate in `Cargo.lock`.
fn locked_version(name: &str) -> String {
    let lock = include_str!("../../../Cargo.lock");
    let package = format!("name = \"{name}\"\nversion = \"");
    let version = lock.split_once(&package);
    let version = version.and_then(|(_, rest)| rest.split('"').next());
    format!("{name} {}", version.unwrap_or("unknown"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the only setting of tests and benchmarks"
)]
fn postgres() -> String {
    let Ok(url) = std::env::var("CORE_TEST_POSTGRES_URL") else {
        return "not measured".to_owned();
    };
    let setting = |name: &str| output("psql", &[&url, "-Atc", &format!("SHOW {name}")]);
    format!("{}, fsync {}", setting("server_version"), setting("fsync"))
}
