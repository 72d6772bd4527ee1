//! The verification of the journal: each kind of difference is found.

use core_domain::access::authorize_operator;
use core_domain::billing::{
    Account, CreditGrant, CreditGrantQuery, Customer, CustomerQuery, Invoice, InvoiceQuery,
    InvoiceStatus, JournalDifference, JournalEntry, JournalEntryQuery,
};
use core_domain::kernel::{Context, CustomerId, InvoiceId, Record, Stored};
use core_domain::port::{Persisted, transact};
use core_domain::testing::RecordKey;
use core_domain::use_case::billing::journal_check::verify_journal;
use serde_json::{Value, json};

use super::platform_with_card;
use crate::world::{World, on_every_store, operator};

/// Creates a customer with a credit of which something is left, a paid invoice and an open one.
async fn billed_customer(world: &World) -> CustomerId {
    world.set_time("2027-11-01T00:00:00Z");
    let (platform, customer) = platform_with_card(world).await;
    let credit = json!({ "customerId": customer, "amount": 3_900, "description": "Welcome" });
    grant(world, &credit).await;
    let subscribed = world.subscribe(&platform, "starter").await.expect(201);
    assert_eq!(subscribed.json["status"], "active");
    world
        .use_card(&customer, "pm_card_chargeCustomerFail")
        .await;
    world.bill_until("2027-12-01T00:00:00Z").await;
    let open = world.last_invoice(&platform).await;
    assert_eq!(
        (&open["status"], &open["amountRemaining"]),
        (&json!("open"), &json!(1_900))
    );
    let credit = json!({ "customerId": customer, "amount": 700, "description": "Sorry" });
    grant(world, &credit).await;
    CustomerId::parse(&customer).unwrap()
}

async fn grant(world: &World, credit: &Value) {
    let path = "/operator/credits";
    let granted = world.billing.post(&operator(), path, credit.clone()).await;
    assert_eq!(granted.expect(201).json["status"], "active");
}

async fn replace<R>(world: &World, seen: Stored<R>, next: R) -> Stored<R>
where
    R: Persisted + Clone,
{
    let (seen, next) = (&seen, &next);
    let replaced = transact(world.app.store.as_ref(), |uow, _| {
        Box::pin(async move {
            let repository = R::repository(uow.repositories(RecordKey::for_tests()));
            Ok(repository.replace(seen, next.clone()).await?)
        })
    });
    replaced.await.unwrap()
}

async fn differences(world: &World) -> Vec<JournalDifference> {
    let mut found = Vec::new();
    let cx = Context::system(world.app.entropy.clone());
    let scope = authorize_operator(&cx).unwrap();
    let mut report = |difference| found.push(difference);
    let verified = verify_journal(&scope, world.app.store.as_ref(), &mut report).await;
    assert_eq!(verified.unwrap().differences, found.len() as u64);
    found
}

/// Changes the first record of a query, verifies the journal, and restores the record.
async fn after_change<R>(
    world: &World,
    query: &R::Query,
    change: impl FnOnce(&mut R),
) -> Vec<String>
where
    R: Persisted + Record + Clone,
{
    let seen = world.all::<R>(query).await.remove(0);
    let original = seen.edit();
    let mut next = seen.edit();
    change(&mut next);
    let changed = replace(world, seen, next).await;
    let found = differences(world).await;
    replace(world, changed, original).await;
    assert_eq!(differences(world).await, []);
    found.iter().map(ToString::to_string).collect()
}

on_every_store! { every_changed_record_is_found }

async fn every_changed_record_is_found(world: World) {
    let customer = billed_customer(&world).await;
    world.assert_books_balance().await;
    let of = |text: &str| format!("customer {customer}: {text}");

    let all = CustomerQuery::All;
    let found = after_change::<Customer>(&world, &all, |customer| customer.balance += 5).await;
    let balance = of("balance is 0 usd in the journal and 5 in the records");
    assert_eq!(found, [balance]);
    let raised = |customer: &mut Customer| customer.credit_balance += 1;
    let found = after_change::<Customer>(&world, &all, raised).await;
    let credits = of("credits is 700 usd in the journal and 701 in the records");
    assert_eq!(found, [credits]);
    let forgotten = |customer: &mut Customer| customer.invoice_count = 1;
    let found = after_change::<Customer>(&world, &all, forgotten).await;
    assert!(
        found.len() == 1 && found[0].contains("is wrong or used twice"),
        "{found:?}"
    );
    let counted = |customer: &mut Customer| customer.invoice_count = i64::MAX;
    let found = after_change::<Customer>(&world, &all, counted).await;
    assert!(
        found.len() == 1 && found[0].contains("no invoice has a number"),
        "{found:?}"
    );

    let grants = CreditGrantQuery::ActiveOf(customer.clone());
    let grant = world.all::<CreditGrant>(&grants).await.remove(0);
    let less = |grant: &mut CreditGrant| grant.remaining -= 1;
    let found = after_change::<CreditGrant>(&world, &grants, less).await;
    let text = "700 is left in the journal and 699 in the record";
    assert_eq!(found, [of(&format!("credit {}: {text}", grant.id))]);

    let open = InvoiceQuery::Of {
        customer_id: customer.clone(),
        status: Some(InvoiceStatus::Open),
    };
    let invoice = world.all::<Invoice>(&open).await.remove(0);
    let id = &invoice.id;
    let reduced = |invoice: &mut Invoice| invoice.amount_remaining -= 100;
    let found = after_change::<Invoice>(&world, &open, reduced).await;
    let unpaid = "1900 is unpaid in the journal and 1800 in the record";
    let expected = [
        of(&format!("invoice {id}: the amounts do not add up")),
        of(&format!("invoice {id}: {unpaid}")),
        of("receivable is 1900 usd in the journal and 1800 in the records"),
    ];
    assert_eq!(found, expected);
    let numbered = invoice.number.clone().unwrap();
    let skipped = numbered.replace("-000002", "-000003");
    let other = skipped.clone();
    let renumbered = move |invoice: &mut Invoice| invoice.number = Some(other);
    let found = after_change::<Invoice>(&world, &open, renumbered).await;
    let expected = [
        of(&format!(
            "invoice {id}: the number {skipped} is wrong or used twice"
        )),
        of(&format!(
            "no invoice has a number from {numbered} to {numbered}"
        )),
    ];
    assert_eq!(found, expected);

    every_changed_entry_is_found(&world, &customer, &invoice.id).await;
}

async fn every_changed_entry_is_found(world: &World, customer: &CustomerId, invoice: &InvoiceId) {
    let of = |text: &str| format!("customer {customer}: {text}");
    let about = JournalEntryQuery::About(invoice.as_str().to_owned());
    let entry = world.all::<JournalEntry>(&about).await.remove(0);
    let id = &entry.id;
    let one_sided = |entry: &mut JournalEntry| {
        let receivable =
            |p: &&mut core_domain::billing::StoredPosting| p.account == Account::Receivable;
        entry.postings.iter_mut().find(receivable).unwrap().amount += 7;
    };
    let found = after_change::<JournalEntry>(world, &about, one_sided).await;
    let unbalanced = of(&format!(
        "journal entry {id}: the entry does not balance in usd"
    ));
    assert_eq!(found[0], unbalanced);
    assert!(
        found[1].starts_with("the journal does not balance in usd: debit"),
        "{found:?}"
    );
    let receivable = of("receivable is 1907 usd in the journal and 1900 in the records");
    assert_eq!(found.last(), Some(&receivable));
    assert_eq!(found.len(), 4, "{found:?}");

    let stranger = CustomerId::parse("0192f3ab-7c20-7d3e-9b4a-5f6c7d8e9f01").unwrap();
    let moved = |entry: &mut JournalEntry| entry.customer_id = stranger.clone();
    let found = after_change::<JournalEntry>(world, &about, moved).await;
    let unknown = format!("customer {stranger}: journal entry {id}: there is no such customer");
    assert_eq!(found[0], unknown);
    assert!(
        found.iter().any(|found| found.contains(": receivable is")),
        "{found:?}"
    );
}
