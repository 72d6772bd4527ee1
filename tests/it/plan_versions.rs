//! Versions of plans on the command line: their comparison with the database, and the move of subscriptions.

use std::path::{Path, PathBuf};

use core_domain::billing::{PlanCatalog, PlanTier};
use serde_json::{Value, json};

use crate::world::{Call, Installation, PlatformMember, SERVICE_KEY, Server, run};

/// Writes a configuration with the standard plans, in which `growth` has this version and price of a month.
fn configuration(folder: &Path, version: u32, month_amount: u32) -> PathBuf {
    let standard = PlanCatalog::default();
    let mut plans: Vec<_> = standard.by_rank().into_iter().cloned().collect();
    for plan in plans
        .iter_mut()
        .filter(|plan| plan.tier == PlanTier::Growth)
    {
        plan.version = version;
        plan.month_amount = month_amount;
    }
    let settings = json!({ "settings": { "billing": { "plans": plans } } });
    let file = folder.join(format!("growth-{version}-{month_amount}.toml"));
    std::fs::write(&file, toml::to_string(&settings).unwrap()).unwrap();
    file
}

/// Runs a command of the server. Returns its exit status and everything that it printed.
async fn command(data: &Path, config: &Path, arguments: &[&str]) -> (i32, String) {
    let config = ["--config", config.to_str().unwrap()];
    let output = run(data, &[&config, arguments].concat(), "").await;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let said = text(output.stdout) + &text(output.stderr);
    (output.status.code().unwrap(), said)
}

async fn subscription(server: &Server, platform: &str) -> Value {
    let path = format!("/subscription?platformId={platform}");
    let call = Call::get(&path).bearer(SERVICE_KEY);
    server.send("billing", call).await.expect(200).json
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_version_is_found_before_a_start_and_a_new_one_is_moved_to() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let changed = configuration(folder.path(), 1, 10_900);
    let new = configuration(folder.path(), 2, 10_900);
    let (code, said) = command(&data, &changed, &["check-config"]).await;
    assert!(code == 0 && said.contains("were not compared"), "{said}");

    let server = Server::start(&data, &[]).await;
    let platform = PlatformMember::operating(&server, "engines").await.platform;
    let body = json!({ "platformId": platform, "tier": "growth", "trialDays": 0,
        "paymentMethodId": "pm_card_visa", "billingEmail": "billing@example.org" });
    let call = Call::post("/subscription", &body).bearer(SERVICE_KEY);
    let _ = server.send("billing", call).await.expect(201);
    for (config, is_valid) in [(&changed, false), (&new, true)] {
        let (code, said) = command(&data, config, &["check-config"]).await;
        let (expected, words) = match is_valid {
            true => (0, "the configuration is valid"),
            false => (2, "the terms of the plan growth have changed"),
        };
        assert!(code == expected && said.contains(words), "{said}");
    }
    let migrate = ["migrate-plan", "growth:1", "growth:2"];
    let (code, said) = command(&data, &new, &migrate).await;
    assert!(
        code == 1 && said.contains("stop the server first"),
        "{said}"
    );
    assert!(server.terminate().await.success());

    for (arguments, code, words) in [
        (["growth:1", "growth:3"], 1, "growth:3 was never configured"),
        (["growth", "growth:2"], 2, "such as growth:2"),
        (
            ["growth:1", "growth:2"],
            0,
            "1 subscriptions will move from growth:1 to growth:2",
        ),
        (["growth:1", "growth:2"], 0, "0 subscriptions will move"),
    ] {
        let arguments = [&["migrate-plan"], &arguments[..]].concat();
        let (exit, said) = command(&data, &new, &arguments).await;
        assert!(
            exit == code && said.contains(words),
            "{arguments:?}: {said}"
        );
    }
    let server = Server::start(&data, &["--config", new.to_str().unwrap()]).await;
    let seen = subscription(&server, &platform).await;
    assert_eq!(
        (&seen["amount"], &seen["migration"]["planVersion"]),
        (&json!(9_900), &json!(2))
    );
    assert!(server.terminate().await.success());
}
