//! `POST /internal/billing/tick`: makes what is due in billing now, and moves the test clock of billing.

use std::sync::Arc;
use std::time::Duration;

use core_domain::access::OperatorScope;
use core_domain::kernel::{Code, Result, Timestamp};
use core_domain::port::UnitOfWork;
use core_domain::use_case::billing::advance_job::{DueCustomers, queue_due};
use core_domain::use_case::billing::follow::follow_changes;
use core_domain::use_case::billing::usage_invoice::close_usage;
use core_domain::use_case::billing::{Billing, clock};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::kernel::{Cx, DetachedCx, Endpoint, Input, Output, post};

/// The longest time that a request waits for the jobs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause between two looks at the jobs.
const PAUSE: Duration = Duration::from_millis(20);

/// The minimum pause, as a multiple of the time that looking took.
const PAUSE_FACTOR: u32 = 10;

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        post("/internal/billing/tick", "tickBilling")
            .summary("Makes what is due in billing.")
            .description(
                "Renewals, the ends of trials, repeated charges and expiries are jobs, which the \
                 suite queues by itself every few seconds. This request queues those that are \
                 due now, and waits at most 60 seconds until they have ended. With `now`, the \
                 clock of billing is first moved forward to that instant, and runs on from \
                 there. That needs the setting `billing.test_clock`.",
            )
            .success(&[StatusCode::OK, StatusCode::ACCEPTED])
            .refuses(&[Code::InvalidState])
            .writes_then(billing, begin, finish),
    ]
}

/// Request body of a tick.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Tick {
    /// The instant to which the test clock of billing is moved forward. Default: it is not moved.
    now: Option<Timestamp>,
}

/// The response to a tick.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TickResponse {
    /// The current instant of billing.
    now: Timestamp,
    /// The number of customers for whom something is still due and whose jobs run. 0 unless the status is 202.
    running: usize,
    /// The number of customers whose jobs wait for the payment provider, or have failed.
    waiting: usize,
}

async fn begin(
    _: &Cx,
    billing: Arc<Billing>,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), Tick>,
) -> Result<Timestamp> {
    clock::move_forward(&scope, uow, billing.clock, input.body.now).await
}

async fn finish(
    cx: DetachedCx,
    billing: Arc<Billing>,
    now: Timestamp,
) -> Result<Output<TickResponse>> {
    let store = cx.app.store.as_ref();
    follow_changes(&cx, store, &billing).await?;
    let deadline = Instant::now() + PATIENCE;
    close_usage(&cx, store, &billing).await?;
    let customers = loop {
        let began = Instant::now();
        let customers = queue_due(&cx, store, &billing).await?;
        if customers.running == 0 || Instant::now() >= deadline {
            break customers;
        }
        // With many customers, looking takes time that their jobs need.
        tokio::time::sleep(PAUSE.max(began.elapsed() * PAUSE_FACTOR)).await;
    };
    let DueCustomers { running, waiting } = customers;
    let status = match running {
        0 => StatusCode::OK,
        _ => StatusCode::ACCEPTED,
    };
    let response = TickResponse {
        now,
        running,
        waiting,
    };
    Ok(Output::new(response).status(status))
}
