//! The dashboard and the alert rules in `docs/operations`: they use only metrics and labels that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use core_http::kernel::metrics::MetricKind;
use core_suite::Suite;
use serde_json::Value;

use super::exposition::promtool;

/// Labels that Prometheus adds to every series of a scrape.
const TARGET_LABELS: [&str; 2] = ["instance", "job"];

/// The metric that Prometheus itself writes for every target.
const UP: &str = "up";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations")
}

/// Returns the labels of every series of a suite by name.
async fn known_series() -> BTreeMap<String, BTreeSet<String>> {
    let suite = Suite::builder().in_memory().build().await.unwrap();
    let descriptions = suite.metrics().descriptions();
    suite.shutdown().await;
    let mut series = BTreeMap::new();
    for known in descriptions {
        let labels = known.labels.iter().chain(&TARGET_LABELS);
        let labels: BTreeSet<String> = labels.map(|label| (*label).to_owned()).collect();
        if known.kind == MetricKind::Histogram {
            let mut of_bucket = labels.clone();
            of_bucket.insert("le".to_owned());
            series.insert(format!("{}_bucket", known.name), of_bucket);
            for part in ["sum", "count"] {
                series.insert(format!("{}_{part}", known.name), labels.clone());
            }
        } else {
            series.insert(known.name.to_owned(), labels);
        }
    }
    series
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == ':'
}

/// The use of a series in a text: its name, and the labels of its selector.
#[derive(Debug, PartialEq, Eq)]
struct Use {
    name: String,
    labels: Vec<String>,
}

/// Finds the uses of series whose names start with `core_`, `core:` or `process_`, or are `up` with a selector.
fn uses(text: &str) -> Vec<Use> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let word_end = rest[start..]
            .find(|c| !is_word(c))
            .map_or(rest.len(), |length| start + length);
        let (word, after) = (&rest[start..word_end], &rest[word_end..]);
        rest = after;
        let is_own = ["core_", "core:", "process_"]
            .iter()
            .any(|start| word.starts_with(start));
        let selector = after
            .strip_prefix('{')
            .filter(|selector| !selector.starts_with('{'));
        let is_up = word == UP && selector.is_some();
        if !is_own && !is_up {
            continue;
        }
        let selector = selector.and_then(|selector| selector.split_once('}'));
        let matchers = selector.map_or("", |(matchers, _)| matchers);
        let labels = matchers
            .split(',')
            .filter_map(|matcher| matcher.split(['=', '!']).next());
        let labels = labels.map(str::trim).filter(|label| !label.is_empty());
        found.push(Use {
            name: word.to_owned(),
            labels: labels.map(str::to_owned).collect(),
        });
    }
    found
}

/// Returns the labels in `by (..)` and `on (..)`.
fn grouping_labels(text: &str) -> BTreeSet<String> {
    let lists = [" by (", " on (", "by ("]
        .iter()
        .flat_map(|start| text.split(start).skip(1));
    let lists = lists.filter_map(|list| list.split_once(')'));
    let labels = lists.flat_map(|(list, _)| list.split(','));
    labels.map(|label| label.trim().to_owned()).collect()
}

/// Fails if a text uses a series or a label that does not exist.
fn check_uses(text: &str, known: &BTreeMap<String, BTreeSet<String>>, recorded: &BTreeSet<String>) {
    for used in uses(text) {
        if used.name == UP || recorded.contains(&used.name) {
            continue;
        }
        // Descriptions name histograms without the suffix of a series.
        let of_histogram = || known.get(&format!("{}_count", used.name));
        let Some(labels) = known.get(&used.name).or_else(of_histogram) else {
            panic!("{} does not exist", used.name);
        };
        for label in &used.labels {
            assert!(labels.contains(label), "{} has no label {label}", used.name);
        }
    }
    let all: BTreeSet<&String> = known.values().flatten().collect();
    for label in grouping_labels(text) {
        assert!(all.contains(&label), "no metric has the label {label}");
    }
}

/// Returns the queries of a dashboard: every `expr`, with values for the variables of Grafana.
fn queries(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str().filter(|_| name == "expr") {
                    Some(query) => found.push(
                        query
                            .replace("$__rate_interval", "5m")
                            .replace("$instance", ".*"),
                    ),
                    None => queries(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| queries(item, found)),
        _ => {}
    }
}

#[tokio::test]
async fn the_dashboard_shows_every_metric_and_queries_nothing_that_does_not_exist() {
    let text = fs::read_to_string(folder().join("grafana-dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut all = Vec::new();
    queries(&dashboard, &mut all);
    assert!(all.len() > 50);
    let known = known_series().await;
    let mut rules = String::from("groups:\n- name: dashboard\n  rules:\n");
    for (number, query) in all.iter().enumerate() {
        check_uses(query, &known, &BTreeSet::new());
        let query = Value::from(query.as_str());
        rules.push_str(&format!(
            "  - record: dashboard:query_{number}\n    expr: {query}\n"
        ));
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rules.yml"), rules).unwrap();
    promtool(
        folder.path(),
        &["check", "rules", "--lint=none", "rules.yml"],
        "",
    );
    let shown = all.join("\n");
    for name in known.keys() {
        let stem = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|part| name.strip_suffix(part));
        assert!(
            shown.contains(stem.unwrap_or(name)),
            "the dashboard does not show {name}"
        );
    }
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64()), "{panel}");
    }
}

#[tokio::test]
async fn alerts_use_existing_metrics_say_what_to_do_and_pass_their_tests() {
    let rules = fs::read_to_string(folder().join("alerts.yml")).unwrap();
    let known = known_series().await;
    let recorded = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- record: "));
    let recorded: BTreeSet<String> = recorded.map(str::to_owned).collect();
    check_uses(&rules, &known, &recorded);
    let alerts: Vec<&str> = rules.split("- alert: ").skip(1).collect();
    assert!(alerts.len() > 15);
    for alert in alerts {
        for part in ["expr: ", "severity: ", "summary: ", "description: >-"] {
            assert!(alert.contains(part), "{part} is missing: {alert}");
        }
    }
    promtool(&folder(), &["check", "rules", "alerts.yml"], "");
    promtool(&folder(), &["test", "rules", "alerts.test.yml"], "");
}

#[test]
fn uses_of_series_are_found_with_their_labels() {
    let text = r#"sum by (a) (rate(core_x_total{service="s",code!~"b"}[5m])) / core:y > up{job="core"} and up 3"#;
    let named = |name: &str, labels: &[&str]| Use {
        name: name.to_owned(),
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
    };
    let expected = [
        named("core_x_total", &["service", "code"]),
        named("core:y", &[]),
        named("up", &["job"]),
    ];
    assert_eq!(uses(text), expected);
    assert!(grouping_labels(text).contains("a"));
}
