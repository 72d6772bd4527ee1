//! F3: the provider performs an operation without a reply, is down or throttles for a while, or is called twice.

use core_domain::provisioning::{JobStatus, MAX_ATTEMPTS};

use crate::jobs::assert_invariants;
use crate::world::{Engine, Fault, on_every_store};

on_every_store! {
    Engine:
        a_burst_of_provider_errors_is_waited_out,
        an_object_created_without_a_reply_is_observed_and_not_created_again,
}

/// Runs a job of three steps. Each step fails as often as it may without failing the job.
async fn survives(world: &Engine, fault: impl Fn(usize) -> Fault) {
    let most = usize::try_from(MAX_ATTEMPTS).unwrap() - 1;
    let mut script = Vec::new();
    for _ in 0..3 {
        // The script is read from its end.
        script.push(Fault::None);
        script.extend((0..most).map(&fault));
    }
    world.provider.script(script);
    let id = world.create(0).await;
    world.until_idle().await;
    let job = world.job(&id).await;
    assert_eq!(job.status, JobStatus::Completed, "{job:?}");
    assert_invariants(world).await;
}

async fn a_burst_of_provider_errors_is_waited_out(world: Engine) {
    survives(&world, |at| [Fault::Throttled, Fault::Down][at % 2]).await;
    assert_eq!(world.provider.fault_count(), 21);
    assert_eq!(world.provider.names().len(), 3);
}

async fn an_object_created_without_a_reply_is_observed_and_not_created_again(world: Engine) {
    survives(&world, |_| Fault::NoAnswer).await;
    // One fault per step, because the next attempt observes the object.
    assert_eq!(world.provider.fault_count(), 3);
    assert_eq!(world.provider.names().len(), 3);
}
