//! The cost of a request to `core-server` with its log in a file, compared with the library alone.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use core_domain::gateway::RateKind;

use crate::harness::backend::{Backend, Place};
use crate::harness::cpu::Cores;
use crate::harness::installation::{Installation, SERVICE_KEY};
use crate::harness::process::Process;
use crate::plan::Plan;
use crate::report::Report;
use crate::requests::{ServerConfig, gateway_to_platform, gateway_to_platform_from};
use crate::rounds;

/// Maximum additional cost of a request compared with the library alone, in microseconds.
const GOAL_US: f64 = 2.0;

pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    let Some(binary) = binary(plan) else {
        report.note("core-server was not measured: its binary does not exist.");
        return;
    };
    let place = Place::new(Backend::Memory);
    let library = ServerConfig {
        location: place.location.clone(),
        platforms: 0,
        session_cache: true,
    };
    let library = library.start();
    let server = start(&binary, place.location.folder(), Backend::Memory);
    let origin = format!("http://{}", server.iam);
    let binary_target = gateway_to_platform_from(&server, &origin);
    let targets = [gateway_to_platform(&library), binary_target];
    let measured = rounds::measure(plan, &targets);
    report.server(&measured[1], &measured[2], GOAL_US);
    drop(server);
    library.process.end();
}

/// Returns the server's binary. A benchmark builds it in release mode; a test run uses an existing one.
pub(crate) fn binary(plan: &Plan) -> Option<PathBuf> {
    // .../target/release/deps/suite-hash -> .../target/release/core-server
    let own = std::env::current_exe().unwrap();
    let folder = own.parent().unwrap().parent().unwrap();
    let binary = folder.join(format!("core-server{}", std::env::consts::EXE_SUFFIX));
    if plan.is_bench {
        let build = [
            "build",
            "--quiet",
            "--locked",
            "--release",
            "-p",
            "core-server",
        ];
        let status = core_tests::cargo().args(build).status();
        assert!(status.unwrap().success(), "core-server could not be built");
    }
    binary.exists().then_some(binary)
}

/// Starts the server without limits of rates and connections, with its log in a file.
pub(crate) fn start(binary: &Path, folder: &Path, backend: Backend) -> Installation {
    let config = folder.join("core-server.toml");
    std::fs::write(&config, without_limits()).unwrap();
    let log = std::fs::File::create(folder.join("core-server.log")).unwrap();
    let mut command = Cores::Server.command(binary);
    command
        .args(["--base-port", "0", "--data"])
        .arg(folder.join("core-server-data"))
        .arg("--config")
        .arg(&config)
        .env("AUTH_API_KEY", SERVICE_KEY)
        .env_remove("RUST_LOG")
        .stderr(Stdio::from(log));
    if backend == Backend::Memory {
        command.args(["--database-url", "memory:"]);
    }
    Installation::of(Process::start(command))
}

/// Returns a configuration that lifts the limits of rates and connections.
fn without_limits() -> String {
    let lines = RateKind::ALL.iter().map(|kind| {
        let (kind, quota) = (kind.as_str(), u32::MAX);
        format!("[settings.gateway.rates.{kind}]\nrequests = {quota}\nwindow = \"1m\"\n")
    });
    let connections =
        "[settings.listener]\nmax_connections = 4000\nmax_connections_per_client = 2000\n";
    lines.chain([connections.to_owned()]).collect()
}
