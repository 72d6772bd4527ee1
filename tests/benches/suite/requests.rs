//! Measures the cost of requests, on every store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::fill::{self, Fill};
use crate::harness::backend::{Backend, Location, Place};
use crate::harness::cpu::Cores;
use crate::harness::installation::{IAM, Installation, SERVICE_KEY, with_bearer};
use crate::harness::load::{Requests, Target, always};
use crate::harness::process::Process;
use crate::harness::server;
use crate::plan::Plan;
use crate::report::Report;
use crate::rounds;

/// The configuration of a measured server.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ServerConfig {
    pub(crate) location: Location,
    /// The number of platforms at the start.
    pub(crate) platforms: u32,
    /// True if the gateway caches sessions, which is the default.
    pub(crate) session_cache: bool,
}

impl ServerConfig {
    /// Fills the store and starts the server.
    pub(crate) fn start(&self) -> Installation {
        let (location, rows) = (self.location.clone(), 0..self.platforms);
        Fill { location, rows }.in_child();
        self.start_filled()
    }

    /// Starts the server over a store that is already filled.
    pub(crate) fn start_filled(&self) -> Installation {
        Installation::of(Process::in_role("server", &json!(self), Cores::Server))
    }
}

/// The role of that server.
pub(crate) async fn serve(served: ServerConfig) {
    let mut builder = served.location.suite();
    if served.location.backend == Backend::Memory {
        let store = served.location.store().await;
        fill::platforms(&store, Backend::Memory, 0..served.platforms).await;
        builder = builder.store(store);
    }
    if !served.session_cache {
        builder = builder.settings(|settings| settings.gateway.session_cache = Duration::ZERO);
    }
    server::serve(builder).await;
}

/// A request, and the goals for its cost relative to bare hyper.
struct Row {
    name: &'static str,
    /// The goals for memory, SQLite and Postgres.
    goals: [Option<f64>; 3],
}

impl Row {
    fn goal(&self, backend: Backend) -> Option<f64> {
        self.goals.get(backend as usize).copied().flatten()
    }
}

const ROWS: [Row; 5] = [
    Row {
        name: "gateway -> platform, session cached",
        goals: [Some(3.0), Some(4.5), None],
    },
    Row {
        name: "gateway -> platform, session looked up",
        goals: [Some(4.5), Some(7.0), None],
    },
    Row {
        name: "registry GET one",
        goals: [Some(1.8), Some(2.8), None],
    },
    Row {
        name: "registry page of 20 of 10,000",
        goals: [Some(5.0), Some(9.0), None],
    },
    Row {
        name: "IAM get-session",
        goals: [Some(2.5), Some(4.0), None],
    },
];

const POST: Row = Row {
    name: "POST a platform, 32 writers",
    goals: [Some(6.0), Some(10.0), Some(14.0)],
};

pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    for backend in &plan.request_backends {
        let (cached_place, place) = (Place::new(*backend), Place::new(*backend));
        let served = |place: &Place, session_cache| ServerConfig {
            location: place.location.clone(),
            platforms: plan.platforms,
            session_cache,
        };
        let cached = served(&cached_place, true).start();
        let looked_up = served(&place, false).start();
        let targets = [
            gateway_to_platform(&cached),
            gateway_to_platform(&looked_up),
            get_one(&cached, plan.platforms),
            page_of_20(&cached),
            get_session(&cached),
        ];
        let measured = rounds::measure(plan, &targets);
        report.bare(&measured[0]);
        for (row, measured) in ROWS.iter().zip(&measured[1..]) {
            report.request(row.name, *backend, measured, row.goal(*backend));
        }
        let measured = rounds::measure(plan, &[post_platform(&cached)]);
        report.request(POST.name, *backend, &measured[1], POST.goal(*backend));
        cached.process.end();
        looked_up.process.end();
    }
}

/// A member reads the platform, through the gateway.
pub(crate) fn gateway_to_platform(installation: &Installation) -> Target {
    gateway_to_platform_from(installation, IAM)
}

/// The same request, with a user that signed up at this origin.
pub(crate) fn gateway_to_platform_from(installation: &Installation, origin: &str) -> Target {
    let person = installation.sign_up("engines", origin);
    Target {
        process: installation.process.id(),
        address: installation.gateway,
        requests: always(person.request("GET", &person.at(""), None)),
    }
}

/// An operator reads platforms, one after the other, directly from the registry.
pub(crate) fn get_one(installation: &Installation, platforms: u32) -> Target {
    let asked = AtomicU32::new(0);
    let requests: Requests = Arc::new(move || {
        // The factor is prime, so that consecutive requests read rows that are not neighbours.
        let number = asked.fetch_add(1, Ordering::Relaxed).wrapping_mul(7_919) % platforms;
        let path = format!("/api/v1/platforms/{}", fill::id(number));
        with_bearer(SERVICE_KEY, "GET", &path, None).into()
    });
    Target {
        process: installation.process.id(),
        address: installation.registry,
        requests,
    }
}

/// An operator reads the first page of all platforms.
pub(crate) fn page_of_20(installation: &Installation) -> Target {
    let path = "/api/v1/platforms?limit=20";
    Target {
        process: installation.process.id(),
        address: installation.registry,
        requests: always(with_bearer(SERVICE_KEY, "GET", path, None)),
    }
}

fn get_session(installation: &Installation) -> Target {
    let person = installation.sign_up("sessions", IAM);
    let path = "/api/auth/get-session";
    Target {
        process: installation.process.id(),
        address: installation.iam,
        requests: always(person.request("GET", path, None)),
    }
}

/// An operator creates platforms, each with a new slug.
fn post_platform(installation: &Installation) -> Target {
    let posted = AtomicU32::new(0);
    let requests: Requests = Arc::new(move || {
        let number = posted.fetch_add(1, Ordering::Relaxed);
        let body = json!({ "name": "New engines", "slug": format!("new-engines-{number}") });
        with_bearer(SERVICE_KEY, "POST", "/api/v1/platforms", Some(&body)).into()
    });
    Target {
        process: installation.process.id(),
        address: installation.registry,
        requests,
    }
}
