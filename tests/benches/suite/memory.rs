//! The memory of `core-server`: idle after its start, and for each idle connection.

use std::net::TcpStream;
use std::path::Path;

use crate::core_server;
use crate::harness::backend::{Backend, Place};
use crate::harness::http::request;
use crate::harness::installation::Installation;
use crate::harness::process::resident_kib;
use crate::plan::Plan;
use crate::report::Report;

/// The goal for the resident memory of an idle server.
const IDLE_GOAL: &str = "40 MiB";

/// The goal for the memory of an idle connection.
const CONNECTION_GOAL: &str = "12 KiB";

pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    let Some(binary) = core_server::binary(plan) else {
        report.note("The memory of core-server was not measured: its binary does not exist.");
        return;
    };
    for backend in [Backend::Memory, Backend::Sqlite] {
        measure_on(plan, report, &binary, backend);
    }
}

fn measure_on(plan: &Plan, report: &mut Report, binary: &Path, backend: Backend) {
    let place = Place::new(backend);
    let server = core_server::start(binary, place.location.folder(), backend);
    let resident = || resident_kib(server.process.id());
    // The first requests allocate what the server keeps.
    drop(open_connections(&server, 1));
    let idle = resident();
    let connections = open_connections(&server, plan.connections);
    let each = (resident() - idle) / f64::from(plan.connections);
    drop(connections);
    let idle = format!("{:.1} MiB", idle / 1_024.0);
    report.memory("core-server, idle", backend, idle, IDLE_GOAL);
    let each = format!("{each:.1} KiB");
    report.memory("an idle connection", backend, each, CONNECTION_GOAL);
}

/// Opens connections to the gateway. Each has had a response.
fn open_connections(server: &Installation, count: u32) -> Vec<TcpStream> {
    let health = request("GET", "/health", &[], b"");
    let open = |_| {
        let mut stream = TcpStream::connect(server.gateway).unwrap();
        let mut response = [0; 1_024];
        std::io::Write::write_all(&mut stream, &health).unwrap();
        assert!(std::io::Read::read(&mut stream, &mut response).unwrap() > 0);
        stream
    };
    (0..count).map(open).collect()
}
