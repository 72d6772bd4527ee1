//! The soak test of one store, from the first sign-up to the final check.

use std::time::Duration;

use serde_json::json;

use crate::class::Class;
use crate::client::World;
use crate::harness::backend::{Backend, Place};
use crate::harness::cpu::{self, Cores};
use crate::harness::installation::Installation;
use crate::harness::process::{Process, resident_kib};
use crate::load::Load;
use crate::plan::Plan;
use crate::statistics::line;

/// The part of the capacity that is used.
const SHARE: f64 = 0.7;

/// The part of the capacity that is used during a storm of sign-ins, which takes the rest.
const SHARE_BESIDE_STORM: f64 = 0.3;

/// The factor by which memory may grow after the first third, and still be called flat.
const MAX_MEMORY_GROWTH: f64 = 1.1;

/// The factor by which the 99th percentile of reads may grow in a storm.
const MAX_P99_GROWTH: f64 = 1.5;

/// Runs the soak test. Panics if a write was lost.
pub(crate) fn on(backend: Backend, plan: &Plan) {
    println!("== {}", backend.name());
    let place = Place::new(backend);
    let serve = || Process::in_role("server", &json!(place.location), Cores::All);
    let installation = Installation::of(serve());
    let world = World::sign_up(&installation, plan.people);
    let load = Load::of(world);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(load.rehearse());
    let capacity = runtime.block_on(load.capacity(plan.capacity));
    println!("capacity: {capacity:.0} requests per second; the load is {SHARE} of it");
    runtime.block_on(minutes(
        &load,
        plan,
        installation.process.id(),
        capacity * SHARE,
    ));
    runtime.block_on(storm(&load, plan, capacity * SHARE_BESIDE_STORM));
    match load.ledger.until_jobs_end(&load.world, plan.max_job_time) {
        Some(count) => println!("all {count} jobs and deployments have ended"),
        None => println!("NOT all jobs have ended after {:?}", plan.max_job_time),
    }
    // Kills the server like `kill -9`. Acknowledged writes must remain.
    drop(installation);
    let installation = Installation::of(serve());
    let world = load.world.moved_to(&installation);
    let (count, lost) = runtime.block_on(load.ledger.check(&world));
    assert!(
        lost.is_empty(),
        "{} of {count} writes lost: {lost:#?}",
        lost.len()
    );
    println!("all {count} acknowledged writes are present after the server was killed");
    installation.process.end();
}

/// The long part: prints one line per minute, and whether memory stayed flat. If the hypervisor takes cores away, all
/// requests are late.
async fn minutes(load: &Load, plan: &Plan, server: u32, rate: f64) {
    let running = load.at_rate(rate);
    let mut memory = Vec::new();
    for minute in 1..=plan.minutes {
        let (cpu, kept) = (cpu::time_of(server), stolen());
        tokio::time::sleep(plan.minute).await;
        let cores = |now: Duration, before: Duration| {
            now.saturating_sub(before).as_secs_f64() / plan.minute.as_secs_f64()
        };
        let (used, stolen) = (cores(cpu::time_of(server), cpu), cores(stolen(), kept));
        memory.push(resident_kib(server) / 1_024.0);
        let taken = load.statistics.take();
        let mib = memory[memory.len() - 1];
        println!(
            "{minute:>3}: {mib:.0} MiB, {used:.2} cores ({stolen:.2} stolen) | {}",
            line(&taken)
        );
    }
    running.stop().await;
    load.statistics.take();
    let (settled, last) = (memory[memory.len() / 3], memory[memory.len() - 1]);
    let verdict = if last <= settled * MAX_MEMORY_GROWTH {
        "flat"
    } else {
        "NOT flat"
    };
    println!("memory: {settled:.0} MiB after a third, {last:.0} MiB at the end: {verdict}");
}

/// The storm: measures reads before and during it.
async fn storm(load: &Load, plan: &Plan, rate: f64) {
    let running = load.at_rate(rate);
    tokio::time::sleep(plan.storm).await;
    let before = load.statistics.take();
    println!("before the storm: {}", line(&before));
    let storm = load.storm();
    tokio::time::sleep(plan.storm).await;
    let during = load.statistics.take();
    println!("during the storm: {}", line(&during));
    storm.stop().await;
    running.stop().await;
    load.statistics.take();
    let p99 = |of: &[crate::statistics::OfClass]| of[Class::Read as usize].percentile(99);
    let (before, during) = (p99(&before), p99(&during));
    let verdict = if during <= before * MAX_P99_GROWTH {
        "calm"
    } else {
        "NOT calm"
    };
    println!("reads, p99: {before:.1} ms before, {during:.1} ms during the storm: {verdict}");
}

/// Returns the time that the hypervisor took from the machine's cores, summed over all cores. Zero without `/proc`.
fn stolen() -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    // Format: `cpu user nice system idle iowait irq softirq steal ..`, in hundredths of a second.
    let steal = stat.split_whitespace().nth(8);
    let hundredths = steal.and_then(|steal| steal.parse().ok());
    Duration::from_millis(hundredths.unwrap_or(0) * 10)
}
