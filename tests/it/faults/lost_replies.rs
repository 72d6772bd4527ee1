//! F4: a unit of work is committed, but the reply is lost: of a claim, of an advance, of any other commit.

use core_domain::provisioning::JobStatus;
use core_domain::use_case::provisioning::NoSupervisor;

use crate::jobs::assert_invariants;
use crate::world::{FaultyEngine, on_every_store};

on_every_store! {
    FaultyEngine: a_reply_that_is_lost_after_its_commit_repeats_no_effect,
}

/// Loses the reply to the first commit of a run, then to the second commit of the next run, and so on. Returns the
/// number of runs until no reply was lost.
async fn any_answer_may_be_lost(world: &FaultyEngine, plain: bool) -> u32 {
    let mut commit = 0;
    loop {
        commit += 1;
        let id = match plain {
            true => world.create_plain(0).await,
            false => world.create(0).await,
        };
        world.faults.lose_reply(commit);
        // The result does not matter; the checks below read the state of the job.
        let _ = world.worker().run_one(&NoSupervisor).await;
        let lost = world.faults.has_lost_reply();
        world.faults.lose_reply(0);
        world.restart().await;
        let job = world.job(&id).await;
        assert_eq!(job.status, JobStatus::Completed, "commit {commit}");
        assert!(job.lost_leases <= 1, "commit {commit}: {job:?}");
        if !lost {
            return commit;
        }
    }
}

async fn a_reply_that_is_lost_after_its_commit_repeats_no_effect(world: FaultyEngine) {
    for plain in [false, true] {
        let runs = any_answer_may_be_lost(&world, plain).await;
        assert!(runs > 4, "claim, two advances and the last report: {runs}");
    }
    assert_invariants(&world).await;
}
