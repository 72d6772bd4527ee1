//! Coverage-guided fuzz targets. Each target states its claims in the documentation of its module.
//!
//! `tests/fuzz/run` compiles this program with the flag `fuzzing`, with coverage counters and with libFuzzer, which
//! calls the target that the variable `FUZZ_TARGET` names. An ordinary build needs no fuzzer. It runs a target with
//! the inputs in files: `core-fuzz TARGET FILE..`, for example to debug a crash; without files it uses the seeds.

#![cfg_attr(fuzzing, no_main)]
#![expect(
    clippy::unwrap_used,
    reason = "a panic is how a target reports a violation"
)]

mod cookies;
mod cursors;
mod headers;
mod paths;
mod requests;
mod services;
mod tokens;
mod webhooks;

/// A fuzz target.
struct Target {
    name: &'static str,
    /// Panics if the input violates a claim.
    run: fn(&[u8]),
    /// Returns the inputs to start from.
    seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets. `tests/fuzz/run` reads their names here.
const TARGETS: [Target; 7] = [
    Target {
        name: "paths",
        run: paths::run,
        seeds: || texts(paths::SEEDS),
    },
    Target {
        name: "headers",
        run: headers::run,
        seeds: || texts(headers::SEEDS),
    },
    Target {
        name: "cookies",
        run: cookies::run,
        seeds: || texts(cookies::SEEDS),
    },
    Target {
        name: "tokens",
        run: tokens::run,
        seeds: || texts(tokens::SEEDS),
    },
    Target {
        name: "cursors",
        run: cursors::run,
        seeds: cursors::seeds,
    },
    Target {
        name: "webhooks",
        run: webhooks::run,
        seeds: || texts(webhooks::SEEDS),
    },
    Target {
        name: "requests",
        run: requests::run,
        seeds: requests::seeds,
    },
];

fn texts(seeds: &[&str]) -> Vec<Vec<u8>> {
    seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}

fn find_target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

#[cfg(fuzzing)]
mod fuzzing {
    use std::sync::LazyLock;

    use super::{Target, find_target};

    /// The target that the environment selects.
    static TARGET: LazyLock<&Target> = LazyLock::new(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        find_target(&name).unwrap()
    });

    /// Writes the seeds to the folder that the environment names. libFuzzer reads the folder afterwards.
    fn write_seeds() {
        let Some(folder) = std::env::var_os("FUZZ_SEEDS") else {
            return;
        };
        for (number, seed) in (TARGET.seeds)().iter().enumerate() {
            let file = std::path::Path::new(&folder).join(format!("seed-{number}"));
            std::fs::write(file, seed).unwrap();
        }
    }

    libfuzzer_sys::fuzz_target!(init: write_seeds(), |data: &[u8]| (TARGET.run)(data));
}

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next().as_deref().and_then(find_target);
    let Some(target) = target else {
        let names = TARGETS.map(|target| target.name).join(", ");
        eprintln!("usage: core-fuzz TARGET FILE..; the targets are {names}");
        return std::process::ExitCode::from(2);
    };
    let files: Vec<String> = arguments.collect();
    if files.is_empty() {
        for seed in (target.seeds)() {
            (target.run)(&seed);
        }
    }
    for file in files {
        (target.run)(&std::fs::read(&file).unwrap());
        eprintln!("{file}: the claims hold");
    }
    std::process::ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_of_every_target_hold_for_its_seeds() {
        for target in TARGETS {
            for seed in (target.seeds)() {
                (target.run)(&seed);
            }
        }
    }
}
