//! How IAM is.

use core_domain::access::PublicScope;
use core_domain::kernel::Result;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Endpoint, Input, Output, get};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/health", "health")
            .summary("How the service is.")
            .plain(health),
    ]
}

/// How the service is: `healthy` or `degraded`; 200 either way.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Health {
    status: &'static str,
    checks: Checks,
}

/// How what it needs is: `ok` or `failed`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Checks {
    store: &'static str,
}

async fn health(cx: &Cx, _: PublicScope, _: Input) -> Result<Output<Health>> {
    let (status, store) = match cx.app.is_store_healthy().await {
        true => ("healthy", "ok"),
        false => ("degraded", "failed"),
    };
    Ok(Output::new(Health {
        status,
        checks: Checks { store },
    }))
}
