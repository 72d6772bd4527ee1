//! How IAM is.

use core_domain::kernel::Result;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Input, Output};

/// How the service is: `healthy` or `degraded`; 200 either way.
#[derive(Serialize, JsonSchema)]
pub(super) struct Health {
    status: &'static str,
    checks: Checks,
}

/// How what it needs is: `ok` or `failed`.
#[derive(Serialize, JsonSchema)]
struct Checks {
    store: &'static str,
}

pub(super) async fn health(cx: &Cx, _: Input) -> Result<Output<Health>> {
    let (status, store) = match cx.app.check_store().await {
        Ok(()) => ("healthy", "ok"),
        Err(_) => ("degraded", "failed"),
    };
    Ok(Output::new(Health {
        status,
        checks: Checks { store },
    }))
}
