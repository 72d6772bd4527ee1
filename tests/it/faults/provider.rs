//! F3: the provider does what it was asked and does not say so, is down or throttles for a while, is asked twice.

use core_domain::provisioning::{JobStatus, MAX_ATTEMPTS};

use crate::jobs::invariants_hold;
use crate::world::{Engine, Fault, on_every_store};

on_every_store! {
    Engine:
        a_burst_of_refusals_is_waited_out,
        what_was_made_without_an_answer_is_met_and_not_made_again,
}

/// A job of three steps, each of which may meet as many faults as it has attempts but one.
async fn survives(world: &Engine, fault: impl Fn(usize) -> Fault) {
    let most = usize::try_from(MAX_ATTEMPTS).unwrap() - 1;
    let mut script = Vec::new();
    for _ in 0..3 {
        // Last first.
        script.push(Fault::None);
        script.extend((0..most).map(&fault));
    }
    world.provider.script(script);
    let id = world.create(0).await;
    world.until_idle().await;
    let job = world.job(&id).await;
    assert_eq!(job.status, JobStatus::Completed, "{job:?}");
    invariants_hold(world).await;
}

async fn a_burst_of_refusals_is_waited_out(world: Engine) {
    survives(&world, |at| [Fault::Throttled, Fault::Down][at % 2]).await;
    assert_eq!(world.provider.mishaps(), 21);
    assert_eq!(world.provider.names().len(), 3);
}

async fn what_was_made_without_an_answer_is_met_and_not_made_again(world: Engine) {
    survives(&world, |_| Fault::NoAnswer).await;
    // One a step: the next attempt observes what is there.
    assert_eq!(world.provider.mishaps(), 3);
    assert_eq!(world.provider.names().len(), 3);
}
