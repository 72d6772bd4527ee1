//! The move of all subscriptions from one version of a plan to another.

use core_domain::access::authorize_operator;
use core_domain::billing::{PlanCatalog, PlanTier, PlanVersionName};
use core_domain::kernel::{Context, Result};
use core_domain::port::transact;
use core_domain::use_case::billing::plan::store_versions;
use core_domain::use_case::billing::plan_migration::{MigrationSummary, migrate_plan};
use serde_json::{Value, json};

use super::mails::mails_with;
use super::{named_platform_with_card, paying_platform, platform_with_card};
use crate::world::{World, on_every_store, operator};

/// Returns the standard plans, with version 2 of `growth` for 109 USD a month and 1090 USD a year.
fn new_plans() -> PlanCatalog {
    let standard = PlanCatalog::default();
    let mut plans: Vec<_> = standard.by_rank().into_iter().cloned().collect();
    let growth = plans.iter_mut().find(|plan| plan.tier == PlanTier::Growth);
    let growth = growth.unwrap();
    growth.version = 2;
    growth.month_amount = 10_900;
    growth.year_amount = 109_000;
    PlanCatalog::new(plans).unwrap()
}

/// Configures version 2 of `growth`, as a start of the server with new plans does.
pub(super) async fn configure(world: &World) {
    for plans in [PlanCatalog::default(), new_plans()] {
        let plans = &plans;
        let stored = transact(world.app.store.as_ref(), |uow, _| {
            Box::pin(async move { store_versions(uow, plans).await })
        });
        stored.await.unwrap();
    }
}

pub(super) async fn migrate(world: &World, from: &str, to: &str) -> Result<MigrationSummary> {
    let cx = Context::system(std::sync::Arc::clone(&world.app.entropy));
    let scope = authorize_operator(&cx)?;
    let name = |text: &str| text.parse::<PlanVersionName>().unwrap();
    let (store, billing) = (world.app.store.as_ref(), &world.billing_parts);
    migrate_plan(&cx, &scope, store, billing, name(from), name(to)).await
}

const fn summary(planned: u64, known: u64) -> MigrationSummary {
    MigrationSummary { planned, known }
}

/// Returns the subtotals of a platform's invoices, the oldest first.
async fn subtotals(world: &World, platform: &str) -> Vec<i64> {
    let invoices = world.invoices(platform).await;
    let subtotals = invoices.iter().map(|invoice| invoice["subtotal"].as_i64());
    subtotals.map(Option::unwrap).collect()
}

async fn a_subscription_moves_at_its_first_boundary_30_days_after_one_mail(world: World) {
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = paying_platform(&world, "growth").await;
    configure(&world).await;
    world.set_time("2027-11-15T00:00:00Z");
    let moved = migrate(&world, "growth:1", "growth:2").await.unwrap();
    assert_eq!(moved, summary(1, 0));
    world.set_time("2027-11-20T00:00:00Z");
    let again = migrate(&world, "growth:1", "growth:2").await.unwrap();
    assert_eq!(again, summary(0, 1));
    let mails = mails_with(&world, "Your plan").await;
    assert_eq!(mails.len(), 1);
    for words in ["99.00 USD per month", "109.00 USD per month", "2027-12-15"] {
        assert!(mails[0].1.contains(words), "{}", mails[0].1);
    }
    let planned =
        json!({ "tier": "growth", "planVersion": 2, "notBefore": "2027-12-15T00:00:00.000Z" });
    let subscription = world.subscription_of(&platform).await;
    assert_eq!(subscription["migration"], planned);
    // A customer cannot remove the move by keeping the plan.
    let kept = world.change_tier(&platform, "growth", json!({})).await;
    kept.expect_error(409, "TIER_UNCHANGED");
    world.bill_until("2027-12-15T00:00:00Z").await;
    assert_eq!(subtotals(&world, &platform).await, [9900, 9900]);
    assert_eq!(world.subscription_of(&platform).await["migration"], planned);
    world.bill_until("2028-02-01T00:00:00Z").await;
    assert_eq!(
        subtotals(&world, &platform).await,
        [9900, 9900, 10_900, 10_900]
    );
    let subscription = world.subscription_of(&platform).await;
    assert_eq!(subscription["migration"], Value::Null);
    assert_eq!(subscription["priceId"], "price_growth_month_v2");
    assert_eq!(subscription["amount"], 10_900);
    world.assert_books_balance().await;
}
on_every_store!(a_subscription_moves_at_its_first_boundary_30_days_after_one_mail);

#[tokio::test]
async fn a_new_version_alone_changes_no_price() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = paying_platform(&world, "growth").await;
    configure(&world).await;
    world.bill_until("2028-02-01T00:00:00Z").await;
    assert_eq!(subtotals(&world, &platform).await, [9900; 4]);
}

#[tokio::test]
async fn a_year_moves_with_its_next_renewal_and_one_that_is_too_close_with_the_one_after() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = paying_platform(&world, "growth").await;
    let yearly = json!({ "interval": "year" });
    let _ = world
        .change_tier(&platform, "growth", yearly)
        .await
        .expect(200);
    configure(&world).await;
    world.set_time("2028-10-15T00:00:00Z");
    let _ = migrate(&world, "growth:1", "growth:2").await.unwrap();
    world.bill_until("2029-11-01T00:00:00Z").await;
    let paid = subtotals(&world, &platform).await;
    assert_eq!(paid[paid.len() - 2..], [99_000, 109_000]);
}

#[tokio::test]
async fn another_tier_ends_the_move_and_a_planned_change_is_made_first() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (upgraded, _) = paying_platform(&world, "growth").await;
    let (downgraded, _) = named_platform_with_card(&world, "wheels").await;
    let _ = world.subscribe(&downgraded, "growth").await.expect(201);
    configure(&world).await;
    let moved = migrate(&world, "growth:1", "growth:2").await.unwrap();
    assert_eq!(moved, summary(2, 0));
    let _ = world
        .change_tier(&upgraded, "scale", json!({}))
        .await
        .expect(200);
    assert_eq!(
        world.subscription_of(&upgraded).await["migration"],
        Value::Null
    );
    world.set_time("2027-11-10T00:00:00Z");
    let _ = world
        .change_tier(&downgraded, "starter", json!({}))
        .await
        .expect(200);
    world.bill_until("2028-01-01T00:00:00Z").await;
    assert_eq!(subtotals(&world, &downgraded).await, [9900, 2900, 2900]);
    let subscription = world.subscription_of(&downgraded).await;
    assert_eq!(subscription["migration"], Value::Null);
}

#[tokio::test]
async fn a_trial_and_a_paused_subscription_begin_their_paid_period_with_the_new_version() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, customer) = platform_with_card(&world).await;
    let body = json!({ "platformId": platform, "tier": "growth", "trialDays": 40 });
    let path = "/subscription";
    let _ = world
        .billing
        .post(&operator(), path, body)
        .await
        .expect(201);
    for method in world.attached_cards(&platform).await {
        world.detach(&method).await;
    }
    configure(&world).await;
    let _ = migrate(&world, "growth:1", "growth:2").await.unwrap();
    world.bill_until("2027-12-20T00:00:00Z").await;
    assert_eq!(world.subscription_of(&platform).await["status"], "paused");
    world.use_card(&customer, "pm_card_visa").await;
    world.bill().await;
    let subscription = world.subscription_of(&platform).await;
    assert_eq!(subscription["status"], "active");
    assert_eq!(subscription["amount"], 10_900);
    assert_eq!(subtotals(&world, &platform).await, [10_900]);
    world.assert_books_balance().await;
}

#[tokio::test]
async fn a_preview_shows_the_next_invoice_with_the_move() {
    let world = World::new();
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, _) = paying_platform(&world, "growth").await;
    configure(&world).await;
    let _ = migrate(&world, "growth:1", "growth:2").await.unwrap();
    let path = "/subscription/proration-preview?tier=growth&interval=year";
    let path = format!("{path}&platformId={platform}");
    let preview = world.billing.get(&operator(), &path).await;
    assert_eq!(preview.expect(200).json["nextInvoiceAmount"], 109_000);
}

#[tokio::test]
async fn versions_that_do_not_exist_or_cannot_be_chosen_are_refused() {
    let world = World::new();
    configure(&world).await;
    for (from, to) in [
        ("growth:3", "growth:2"),
        ("growth:1", "growth:3"),
        ("growth:1", "growth:1"),
        ("growth:1", "free:1"),
    ] {
        let refused = migrate(&world, from, to).await.unwrap_err();
        assert_eq!(refused.code().as_str(), "VALIDATION_ERROR", "{from} {to}");
    }
}
