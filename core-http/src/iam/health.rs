//! The health check of IAM.

use core_domain::access::PublicScope;
use core_domain::kernel::Result;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Endpoint, Input, Output, get};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/health", "health")
            .summary("Reports the health of the service.")
            .description(
                "Checks that the store can be reached. The status code is 200 in both cases; read \
                 `status` for the result.",
            )
            .plain(health),
    ]
}

/// The health of the service.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Health {
    /// `healthy` if all checks succeeded, otherwise `degraded`.
    status: &'static str,
    /// The results of the individual checks.
    checks: Checks,
}

/// The results of the individual checks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Checks {
    /// The result of the store check: `ok` or `failed`.
    store: &'static str,
}

async fn health(cx: &Cx, _: PublicScope, _: Input) -> Result<Output<Health>> {
    let (status, store) = match cx.app.store_check.is_healthy().await {
        true => ("healthy", "ok"),
        false => ("degraded", "failed"),
    };
    Ok(Output::new(Health {
        status,
        checks: Checks { store },
    }))
}
