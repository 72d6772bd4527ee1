//! Faults in jobs of every kind. In the end the provider and the registry agree, and a cancelled job leaves nothing
//! behind. Objects of other owners never change.

use core_domain::port::Infrastructure;
use core_domain::provisioning::JobStatus;
use core_domain::registry::ResourceType;
use core_local::FaultMoment;

use super::others::BY_HAND;
use super::scenarios::{Request, SCENARIOS, Scenario};
use super::snapshot::Snapshot;
use crate::world::{Calls, JobCommand, Platforms, on_every_store};

/// The provider's operations that jobs use.
const PROVIDER_CALLS: [&str; 6] = ["create", "remove", "route", "unroute", "serve", "stop"];

on_every_store! { Platforms: every_kind_has_its_effect_on_every_store }

async fn every_kind_has_its_effect_on_every_store(world: Platforms) {
    let platform = &Scenario {
        before: &[],
        request: Request::Stack,
        undoes: true,
    }
    .create_platform(&world)
    .await;
    let before = Snapshot::of(&world, platform).await;
    let mut others = before.others.clone();
    for (request, objects) in [
        (Request::Stack, 4),
        (Request::Record, 4),
        (Request::Domain, 4),
        (Request::NoDomain, 4),
        (Request::NoRecord, 4),
        (Request::App, 7),
        (Request::NoStack { delete_data: false }, 2),
        (Request::Stack, 5),
        (Request::NoStack { delete_data: true }, 0),
        (Request::Feature, 1),
        (Request::NoFeature { delete_data: true }, 0),
        (Request::Provision, 6),
        (Request::Auth, 7),
        (Request::Repair, 6),
        (Request::Deprovision, 0),
        (Request::Feature, 1),
        (Request::Cascade, 0),
    ] {
        let scenario = Scenario {
            before: &[],
            request,
            undoes: false,
        };
        let job = scenario.ask(&world, platform).await;
        world.until_idle().await;
        assert_eq!(
            world.status(&job).await,
            JobStatus::Completed,
            "{request:?}"
        );
        let now = Snapshot::of(&world, platform).await;
        assert!(now.agrees(), "{request:?}: {now:?}");
        let made = now.objects.len() - before.objects.len();
        assert_eq!(made, objects, "{request:?}: {now:?}");
        if request == Request::Deprovision {
            others.by_hand.clear();
        }
        assert_eq!(now.others, others, "{request:?}");
    }
}

#[tokio::test]
async fn after_a_crash_anywhere_a_job_of_any_kind_ends_like_an_undisturbed_run() {
    for scenario in SCENARIOS {
        let prepared = scenario.prepare().await;
        let (undisturbed, _) = prepared.run_undisturbed().await;
        for units in 1.. {
            let world = prepared.world().await;
            let job = prepared.ask(&world).await;
            let died = world.dies_within(units).await;
            world.restart().await;
            let context = format!("{scenario:?} after {units} units");
            assert_eq!(world.status(&job).await, JobStatus::Completed, "{context}");
            let now = prepared.snapshot(&world).await;
            assert_eq!(now, undisturbed, "{context}");
            if !died {
                assert!(units > 3, "a run has only {context}");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_call_without_a_reply_is_repeated_without_further_effect() {
    for scenario in SCENARIOS {
        let prepared = scenario.prepare().await;
        let (undisturbed, calls) = prepared.run_undisturbed().await;
        let mut met = 0;
        for (call, number, moment) in each_call(&calls, &[FaultMoment::Before, FaultMoment::Done]) {
            let world = prepared.world().await;
            prepared.ask(&world).await;
            world.leave_unanswered(call, number, moment);
            world.until_idle().await;
            let context = format!("{scenario:?}: {call} {number} {moment:?}");
            assert!(world.has_failed(), "{context}");
            let now = prepared.snapshot(&world).await;
            assert_eq!(now, undisturbed, "{context}");
            met += 1;
        }
        assert!(met > 1, "{scenario:?} calls the provider");
    }
}

/// Lists the calls that create or remove something, with their moment and their number among the calls of the same
/// name.
fn each_call(
    calls: &Calls,
    moments: &[FaultMoment],
) -> impl Iterator<Item = (&'static str, usize, FaultMoment)> {
    let named = PROVIDER_CALLS.into_iter();
    let named = named.flat_map(|call| moments.iter().map(move |moment| (call, *moment)));
    named.flat_map(|(call, moment)| {
        let count = calls.get(&(call, moment == FaultMoment::Done)).copied();
        (0..count.unwrap_or(0)).map(move |number| (call, number, moment))
    })
}

#[tokio::test]
async fn a_permanent_error_fails_the_job_and_a_retry_completes_it() {
    for scenario in SCENARIOS {
        let prepared = scenario.prepare().await;
        let (undisturbed, calls) = prepared.run_undisturbed().await;
        for (call, number, _) in each_call(&calls, &[FaultMoment::Before]) {
            let world = prepared.world().await;
            let job = prepared.ask(&world).await;
            world.refuse_after(call, number);
            world.until_idle().await;
            let context = format!("{scenario:?}: {call} {number}");
            assert!(world.has_failed(), "{context}");
            assert_eq!(world.status(&job).await, JobStatus::Failed, "{context}");
            world.refuse_nothing();
            world.operate(JobCommand::Retry, &job).await.unwrap();
            world.until_idle().await;
            assert_eq!(world.status(&job).await, JobStatus::Completed, "{context}");
            let now = prepared.snapshot(&world).await;
            assert_eq!(now, undisturbed, "{context}");
        }
    }
}

#[tokio::test]
async fn a_job_cancelled_at_any_time_leaves_nothing_behind() {
    for scenario in SCENARIOS.into_iter().filter(|scenario| scenario.undoes) {
        let prepared = scenario.prepare().await;
        let (undisturbed, _) = prepared.run_undisturbed().await;
        for units in 0.. {
            let world = prepared.world().await;
            let before = prepared.snapshot(&world).await;
            let job = prepared.ask(&world).await;
            let died = world.dies_within(units).await;
            if world.status(&job).await == JobStatus::Completed {
                assert!(units > 3, "a run of {scenario:?} has only {units} units");
                break;
            }
            world.operate(JobCommand::Cancel, &job).await.unwrap();
            if died {
                world.worker().recover().await.unwrap();
            }
            world.until_idle().await;
            let context = format!("{scenario:?} after {units} units");
            let now = prepared.snapshot(&world).await;
            assert!(now.agrees(), "{context}: {now:?}");
            assert_eq!(now.objects, before.objects, "{context}");
            assert_eq!(now.entries, before.entries, "{context}");
            assert_eq!(now.served, before.served, "{context}");
            assert_eq!(now.others, before.others, "{context}");
            assert_eq!(now.routed, before.routed, "{context}");
            // The request can be made again.
            world.operate(JobCommand::Retry, &job).await.unwrap();
            world.until_idle().await;
            let now = prepared.snapshot(&world).await;
            assert_eq!(now, undisturbed, "{context}");
        }
    }
}

#[tokio::test]
async fn the_workers_of_a_stack_are_bound_to_its_stores_and_run_its_scripts() {
    let world = Platforms::memory().await;
    let scenario = Scenario {
        before: &[Request::Stack, Request::App],
        request: Request::App,
        undoes: true,
    };
    let platform = scenario.create_platform(&world).await;
    let entries = world.entries(&platform, false).await;
    let named = |service: &str, kind: ResourceType| {
        let mut entries = entries.iter();
        let of = entries.find(|e| e.service_name.as_str() == service && e.resource_type == kind);
        of.unwrap().cf_name.to_string()
    };
    for (service, database, main_module) in [
        ("api", "db", "api.js"),
        ("admin-svc", "admin-db", "service.js"),
    ] {
        let worker = named(service, ResourceType::Worker);
        let script = world
            .provider
            .worker(&worker)
            .await
            .unwrap()
            .unwrap()
            .script;
        assert_eq!(script.main_module, main_module);
        assert!(script.modules[main_module].contains("export default"));
        let bindings = script.bindings.into_iter().map(|b| (b.name, b.resource));
        let wanted = ("DB".to_owned(), named(database, ResourceType::D1));
        assert_eq!(bindings.collect::<Vec<_>>(), [wanted]);
    }
    // A record that was created by hand names an object of another owner.
    for entry in entries
        .iter()
        .filter(|entry| entry.cf_name.as_str() != BY_HAND)
    {
        let object = core_domain::port::ResourceRef {
            resource_type: entry.resource_type,
            name: entry.cf_name.to_string(),
        };
        let object = world.provider.observe(&object).await.unwrap().unwrap();
        assert_eq!(entry.cf_id.as_ref().unwrap().as_str(), object.id);
    }
}
