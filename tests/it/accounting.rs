//! The export and the verification of the journal: in the program, on every store, and on the command line.

use std::path::Path;

use core_domain::access::RecordKey;
use core_domain::billing::{Customer, CustomerQuery};
use core_domain::port::{Persisted, Within};
use core_suite::Suite;
use core_suite::accounting::{Accounting, Day, JournalLine, JournalRange};
use serde_json::{Value, json};

use crate::world::{Backend, Call, Fresh, Installation, PlatformMember, SERVICE_KEY, Server, run};

/// More entries than a page has.
const CREDITS: usize = 120;

/// Creates a customer with a paid invoice and some credits, one entry of the journal each. Returns its id.
async fn billed_customer(on: &impl Installation, credits: usize) -> String {
    let platform = PlatformMember::operating(on, "engines").await.platform;
    let body = json!({ "platformId": platform, "tier": "starter", "trialDays": 0,
        "paymentMethodId": "pm_card_visa", "billingEmail": "billing@example.org" });
    let created = post(on, "/subscription", &body).await;
    assert_eq!(created["status"], "active", "{created}");
    let customer = created["customerId"].as_str().unwrap().to_owned();
    for amount in 1..=credits {
        let body = json!({ "customerId": customer, "amount": amount, "description": "Welcome" });
        post(on, "/operator/credits", &body).await;
    }
    customer
}

async fn post(on: &impl Installation, path: &str, body: &Value) -> Value {
    let call = Call::post(path, body).bearer(SERVICE_KEY);
    on.send("billing", call).await.expect(201).json
}

/// Exports a range. Returns the lines and the number of pages.
async fn read_all(accounting: &Accounting, range: JournalRange) -> (Vec<JournalLine>, usize) {
    let mut export = accounting.export(range);
    let (mut lines, mut pages) = (Vec::new(), 0);
    while let Some(page) = export.next_page().await.unwrap() {
        lines.extend(page);
        pages += 1;
    }
    let sum = |side: fn(&JournalLine) -> u64| lines.iter().map(|line| i128::from(side(line))).sum();
    let expected: (i128, i128) = (sum(|line| line.debit), sum(|line| line.credit));
    assert_eq!(expected.0, expected.1);
    let sums = export
        .trial_balance()
        .map(|(_, sums)| (sums.debit, sums.credit));
    let empty = lines.is_empty();
    assert_eq!(
        sums.collect::<Vec<_>>(),
        if empty { vec![] } else { vec![expected] }
    );
    (lines, pages)
}

/// Changes the balance of the only customer without an entry.
async fn change_balance(suite: &Suite) {
    let units = suite.units();
    let changed = units.transact(|uow, _| {
        Box::pin(async move {
            let customers = Customer::repository(uow.repositories(RecordKey::for_tests()));
            let within = Within::Installation;
            let seen = customers.first(within, &CustomerQuery::All).await?.unwrap();
            let mut next = seen.edit();
            next.balance += 7;
            customers.replace(&seen, next).await?;
            Ok(())
        })
    });
    changed.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journal_is_exported_in_pages_and_verified_on_every_store() {
    for backend in Backend::ALL {
        let fresh = Fresh::on(backend).await;
        let builder = fresh.builder.clone().settings(|settings| {
            settings.billing.allow_simulated_payments = true;
        });
        let suite = builder.build().await.unwrap();
        let customer = billed_customer(&suite, CREDITS).await;
        let accounting = suite.accounting();
        let everything = JournalRange::default();
        let (lines, pages) = read_all(&accounting, everything).await;
        // An invoice that is finalized and paid, and the credits: each has two postings.
        assert_eq!((lines.len(), pages), (2 * (2 + CREDITS), 2), "{backend:?}");
        assert!(lines.is_sorted_by_key(|line| line.date));
        let accounts: Vec<_> = lines.iter().map(|line| line.account.to_string()).collect();
        assert!(accounts.contains(&format!("receivable:{customer}")));
        assert!(accounts.contains(&"cash".to_owned()));
        assert_eq!(read_all(&accounting, everything).await.0, lines);

        let (first, last) = (lines[0].date, lines[lines.len() - 1].date);
        let days = JournalRange::new(Some(first), Some(last)).unwrap();
        assert_eq!(read_all(&accounting, days).await.0, lines, "{backend:?}");
        let past: Day = "2001-01-01".parse().unwrap();
        let past = JournalRange::new(None, Some(past)).unwrap();
        assert_eq!(read_all(&accounting, past).await, (Vec::new(), 1));

        // A store in memory belongs to one suite.
        if backend != Backend::Memory {
            let reader = fresh.builder.clone().open_accounting().await.unwrap();
            assert_eq!(read_all(&reader, everything).await.0, lines, "{backend:?}");
            let verified = reader.verify(|found| panic!("{found}")).await.unwrap();
            assert_eq!(verified.entries, 2 + CREDITS as u64);
            assert_eq!((verified.customers, verified.invoices), (1, 1));
        }
        change_balance(&suite).await;
        let mut found = Vec::new();
        let verified = accounting.verify(|difference| found.push(difference.to_string()));
        assert_eq!(verified.await.unwrap().differences, 1);
        let expected =
            format!("customer {customer}: balance is 0 usd in the journal and 7 in the records");
        assert_eq!(found, [expected], "{backend:?}");
        suite.shutdown().await;
    }
}

/// Runs a command of the server. Returns its exit status, its output and its errors.
async fn command(data: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = run(data, arguments, "").await;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

async fn export(data: &Path, arguments: &[&str]) -> (i32, String, String) {
    command(data, &[&["export-journal"], arguments].concat()).await
}

const HEADER: &str = "date,entry,account,currency,debit,credit,reference\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_read_the_journal_beside_a_running_server() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (code, _, said) = export(&data, &[]).await;
    assert!(code == 1 && said.contains("does not exist"), "{said}");
    assert!(!data.exists());

    let server = Server::start(&data, &[]).await;
    let customer = billed_customer(&server, 1).await;
    let (code, csv, said) = export(&data, &[]).await;
    assert_eq!((code, &*said), (0, ""));
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0].join(",") + "\n", HEADER);
    // Two entries of the invoice and one of the credit have two postings each.
    assert_eq!(rows.len(), 1 + 6 + 1, "{csv}");
    assert!(rows.iter().all(|row| row.len() == 7), "{csv}");
    assert_eq!(
        rows[7],
        ["trial_balance", "", "", "usd", "5801", "5801", ""]
    );
    let receivable = format!("receivable:{customer}");
    assert!(
        rows.iter()
            .any(|row| row[2..6] == [&*receivable, "usd", "2900", "0"]),
        "{csv}"
    );
    assert!(
        rows.iter()
            .any(|row| row[2..6] == ["cash", "usd", "2900", "0"]),
        "{csv}"
    );

    let file = folder.path().join("journal.jsonl");
    let output = ["--format", "jsonl", "--output", file.to_str().unwrap()];
    assert_eq!(
        export(&data, &output).await,
        (0, String::new(), String::new())
    );
    let written = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = written
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 7);
    assert_eq!(lines[0]["type"], "posting");
    assert_eq!(lines[0]["date"], rows[1][0]);
    let sums = json!({ "type": "trial_balance", "currency": "usd", "debit": 5801, "credit": 5801 });
    assert_eq!(lines[6], sums);

    let past = ["--from", "2001-01-01", "--to", "2001-12-31"];
    assert_eq!(
        export(&data, &past).await,
        (0, HEADER.to_owned(), String::new())
    );
    let today = ["--from", rows[1][0], "--to", rows[6][0]];
    assert_eq!(export(&data, &today).await.1, csv);

    let (code, report, _) = command(&data, &["verify-journal"]).await;
    let expected = "usd: debit 5801, credit 5801\n\
         verified: 3 entries, 1 customers, 1 invoices, 1 credits; differences: 0\n";
    assert_eq!((code, &*report), (0, expected));
    assert!(server.terminate().await.success());

    let suite = Suite::builder()
        .data_folder(&data)
        .sqlite(data.join("core.sqlite"));
    let suite = suite.build().await.unwrap();
    change_balance(&suite).await;
    suite.shutdown().await;
    let (code, report, _) = command(&data, &["verify-journal"]).await;
    let difference =
        format!("customer {customer}: balance is 0 usd in the journal and 7 in the records\n");
    assert!(code == 1 && report.starts_with(&difference), "{report}");
    assert!(report.ends_with("differences: 1\n"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_options_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    for day in ["2027-02-29", "yesterday", "2027-2-1"] {
        let (code, _, said) = export(data, &["--from", day]).await;
        assert!(
            code == 2 && said.contains("not a day") && said.contains(day),
            "{said}"
        );
    }
    let reversed = ["--from", "2027-02-02", "--to", "2027-02-01"];
    let (code, _, said) = export(data, &reversed).await;
    assert!(
        code == 2 && said.contains("the first day is after the last one"),
        "{said}"
    );
    let (code, _, said) = export(data, &["--format", "xml"]).await;
    assert!(code == 2 && said.contains("jsonl"), "{said}");
    for command_name in ["export-journal", "verify-journal"] {
        let memory = [command_name, "--database-url", "memory:"];
        let (code, _, said) = command(data, &memory).await;
        assert!(code == 1 && said.contains("in-memory"), "{said}");
    }
    let (code, help, _) = export(data, &["--help"]).await;
    assert_eq!(code, 0);
    for text in [
        "--from <YYYY-MM-DD>",
        "--to <YYYY-MM-DD>",
        "--format",
        "--output <FILE>",
        "trial_balance",
    ] {
        assert!(help.contains(text), "{text}: {help}");
    }
}
