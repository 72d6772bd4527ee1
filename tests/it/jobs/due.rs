//! Timers run on time, even if all slots of a worker are in use.

use std::time::Duration;

use core_domain::kernel::Clock;
use core_domain::provisioning::{JobLane, JobLaneQuery, JobStatus};
use core_suite::{WorkerHandle, WorkerOptions, WorkerWake, start_worker};

use super::audit::assert_invariants;
use crate::world::{Engine, Fault, lane};

/// Queues jobs and lets another worker fail each once, so that their lanes wait for the next attempts.
async fn lanes_that_wait(world: &Engine, count: usize) {
    world.provider.script(vec![Fault::Down; count]);
    for lane in 0..count {
        world.create(lane).await;
    }
    for _ in 0..count {
        world.run_one().await;
    }
}

/// Starts a worker whose only slot is taken by a job that does not end.
async fn busy_worker(world: &Engine, number: usize) -> WorkerHandle {
    world.provider.script([Fault::Hang]);
    let id = world.create(number).await;
    let options = WorkerOptions {
        slots: 1,
        drain: Duration::ZERO,
        ..WorkerOptions::default()
    };
    let handle = start_worker(world.worker(), &WorkerWake::default(), options);
    everybody_waits().await;
    assert_eq!(world.status(&id).await, JobStatus::Running);
    handle
}

/// Lets the tasks of this single-threaded runtime run until all of them wait for a timer. No timer fires.
async fn everybody_waits() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

async fn ready(world: &Engine) -> usize {
    let ready: Vec<JobLane> = world.list(JobLaneQuery::Ready).await;
    ready.len()
}

#[tokio::test]
async fn the_timers_wait_until_the_next_due_time_but_at_most_a_poll_interval() {
    let world = Engine::memory().await;
    let worker = world.worker();
    let poll = Duration::from_millis(800)..=Duration::from_millis(1_200);
    assert!(poll.contains(&worker.timer_pause().await), "nothing waits");
    lanes_that_wait(&world, 1).await;
    let waiting: JobLane = world.find(lane(0).as_str()).await.unwrap();
    let pause = waiting.ready_at.millis() - world.clock.now().millis();
    let (pause, left) = (
        Duration::from_millis(pause.try_into().unwrap()),
        Duration::from_millis(300),
    );
    world.clock.advance(pause - left);
    assert_eq!(worker.timer_pause().await, left);
    assert_eq!(worker.run_timers().await.unwrap().promoted, 0);
    world.clock.advance(left);
    // A due lane does not shorten the pause, even if no process can promote it.
    assert!(poll.contains(&worker.timer_pause().await));
    assert_eq!(worker.run_timers().await.unwrap().promoted, 1);
    assert_eq!(ready(&world).await, 1);
}

/// There are more lanes than one run of the timers promotes.
#[tokio::test]
async fn all_due_lanes_become_ready_even_if_no_slot_is_free() {
    let world = Engine::memory().await;
    lanes_that_wait(&world, 300).await;
    assert_eq!(ready(&world).await, 0);
    world.tick(2);
    let handle = busy_worker(&world, 300).await;
    assert_eq!(ready(&world).await, 300);
    handle.stop().await;
    assert_invariants(&world).await;
}
