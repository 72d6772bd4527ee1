//! A worker that dies between any two units of work, a store that fails any call, and a provider that does not reply.

use core_domain::provisioning::JobStatus;
use core_domain::use_case::provisioning::NoSupervisor;
use core_local::FaultMoment;

use crate::world::Platforms;

#[tokio::test]
async fn after_a_crash_anywhere_a_platform_has_its_six_resources_once() {
    for units in 1.. {
        let world = Platforms::memory().await;
        let done = world.set_up("engines").await;
        let died = world.dies_after(units).await;
        world.restart().await;
        let context = format!("{units} units");
        assert_eq!(world.status(&done.job_id).await, JobStatus::Completed);
        world.assert_six_objects(&done.platform_id, &context).await;
        if !died {
            assert!(units > 12, "a run has only {context}");
            break;
        }
    }
}

#[tokio::test]
async fn after_a_crash_anywhere_a_removed_platform_is_removed_completely() {
    for units in 1.. {
        let world = Platforms::memory().await;
        let platform = world.complete().await;
        world.hard_delete(&platform).await;
        let died = world.dies_after(units).await;
        world.restart().await;
        let context = format!("{units} units");
        world.assert_nothing_left(&platform, &context).await;
        if !died {
            assert!(units > 12, "a run has only {context}");
            break;
        }
    }
}

#[tokio::test]
async fn any_one_call_of_the_store_may_fail_while_a_platform_is_provisioned() {
    for call in 1.. {
        let (world, store) = Platforms::faulty().await;
        let done = world.set_up("engines").await;
        store.fail_call(call);
        // The failure ends the work on the job; the checks below read its state.
        let _ = world.worker().run_one(&NoSupervisor).await;
        if !store.has_failed() {
            assert!(call > 100, "a run has only {call} calls");
            return;
        }
        world.restart().await;
        let context = format!("call {call}");
        assert_eq!(world.status(&done.job_id).await, JobStatus::Completed);
        world.assert_six_objects(&done.platform_id, &context).await;
    }
}

#[tokio::test]
async fn a_provider_that_does_not_reply_creates_nothing_twice() {
    for moment in [FaultMoment::Before, FaultMoment::Staged, FaultMoment::Done] {
        for number in 0..6 {
            let world = Platforms::memory().await;
            let done = world.set_up("engines").await;
            world.leave_unanswered("create", number, moment);
            world.until_idle().await;
            let context = format!("{moment:?} of object {number}");
            assert!(world.has_failed(), "{context} was not met");
            assert_eq!(world.status(&done.job_id).await, JobStatus::Completed);
            world.assert_six_objects(&done.platform_id, &context).await;
        }
    }
}

#[tokio::test]
async fn a_provider_that_does_not_reply_keeps_nothing_of_a_removed_platform() {
    for moment in [FaultMoment::Before, FaultMoment::Done] {
        for number in 0..6 {
            let world = Platforms::memory().await;
            let platform = world.complete().await;
            world.hard_delete(&platform).await;
            world.leave_unanswered("remove", number, moment);
            world.until_idle().await;
            let context = format!("{moment:?} of object {number}");
            assert!(world.has_failed(), "{context} was not met");
            world.assert_nothing_left(&platform, &context).await;
        }
    }
}
