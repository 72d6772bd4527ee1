//! Endpoints for holds, which keep jobs from being claimed by workers.

use core_domain::access::OperatorScope;
use core_domain::kernel::{Code, Result};
use core_domain::port::UnitOfWork;
use core_domain::use_case::provisioning::{self, CreateHold, HoldView};
use http::StatusCode;

use crate::kernel::{
    Cx, Endpoint, Input, ListP1, Output, Versioned, call_with_id, call_with_query, delete, get,
    post,
};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/v1/provision/holds", "listHolds")
            .summary("Lists holds, newest first.")
            .description("The list has the holds of operators and those of suspended platforms.")
            .reads(
                call_with_query(provisioning::holds)
                    .map(|page| Output::new(ListP1::<HoldView>::from(page))),
            ),
        post("/api/v1/provision/holds", "createHold")
            .summary("Keeps jobs from being started.")
            .description(
                "Holds all jobs, the jobs of a kind, or the jobs of a platform: no worker claims \
                 them until the hold is deleted. Steps that are running continue. If an operator \
                 has already set a hold with this scope, it is returned with 200 and stays \
                 unchanged.",
            )
            .success(&[StatusCode::CREATED, StatusCode::OK])
            .refuses(&[Code::NotFound])
            .writes(create),
        get("/api/v1/provision/holds/{holdId}", "getHold")
            .summary("Returns a hold.")
            .description("This includes the holds of suspended platforms.")
            .refuses(&[Code::NotFound])
            .reads(
                call_with_id(provisioning::get_hold)
                    .map(|hold| Versioned::of(&hold, HoldView::from(&*hold))),
            ),
        delete("/api/v1/provision/holds/{holdId}", "deleteHold")
            .summary("Deletes a hold of an operator.")
            .description(
                "The held jobs can be claimed at once, unless another hold applies to them. The \
                 hold of a suspended platform cannot be deleted; it ends with the suspension.",
            )
            .success(&[StatusCode::NO_CONTENT])
            .if_match()
            .refuses(&[Code::NotFound, Code::InvalidState])
            .writes(call_with_id(provisioning::remove_hold)),
    ]
}

async fn create(
    cx: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), CreateHold>,
) -> Result<Versioned<HoldView>> {
    let set = provisioning::create_hold(cx, &scope, uow, &cx.app.kinds, &input.body).await?;
    let status = if set.is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let shown = Output::new(HoldView::from(&*set.hold)).status(status);
    Ok(shown.etag(set.hold.etag()))
}
