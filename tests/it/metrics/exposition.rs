//! A rendering of metrics, and the program that checks it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use core_suite::SuiteMetrics;

/// Much longer than any operation in these tests takes.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// The time between two looks at a counter that a background task increments.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A series: its name and labels, and its value.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    value: f64,
}

/// A rendering of metrics.
#[derive(Clone, Debug)]
pub(super) struct Exposition(pub(super) Vec<Series>);

impl Exposition {
    pub(super) fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(lines.map(series).collect())
    }

    pub(super) fn of(metrics: &SuiteMetrics) -> Self {
        Self::parse(&metrics.render())
    }

    /// Returns the sum of the series with this name and these labels.
    pub(super) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let matches = |series: &&Series| {
            let has = |(label, value): &(&str, &str)| {
                series.labels.get(*label).map(String::as_str) == Some(*value)
            };
            series.name == name && labels.iter().all(has)
        };
        self.0
            .iter()
            .filter(matches)
            .map(|series| series.value)
            .sum()
    }

    /// Returns the names and labels of all series.
    pub(super) fn series(&self) -> BTreeSet<String> {
        let described = |series: &Series| format!("{} {:?}", series.name, series.labels);
        self.0.iter().map(described).collect()
    }
}

/// Parses `name{label="value",..} 1.5`.
fn series(line: &str) -> Series {
    let (name, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = match name.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}').unwrap()),
        None => (name, ""),
    };
    let labels = labels.split("\",").filter(|label| !label.is_empty());
    let label = |label: &str| {
        let (name, value) = label.split_once("=\"").unwrap();
        (name.to_owned(), value.trim_end_matches('"').to_owned())
    };
    Series {
        name: name.to_owned(),
        labels: labels.map(label).collect(),
        value: value.parse().unwrap(),
    }
}

/// Waits until the metrics have a property that a background task brings about.
pub(super) async fn until(metrics: &SuiteMetrics, holds: impl Fn(&Exposition) -> bool) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    let waited = tokio::time::timeout(WAIT_TIMEOUT, async {
        while !holds(&Exposition::of(metrics)) {
            looks.tick().await;
        }
    });
    let waited = waited.await;
    assert!(waited.is_ok(), "not in time: {}", metrics.render());
}

/// Runs promtool in a folder with this standard input. Fails if it finds anything wrong.
pub(super) fn promtool(folder: &Path, arguments: &[&str], input: &str) {
    let child = Command::new("promtool")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child =
        child.unwrap_or_else(|error| panic!("promtool (Debian package prometheus): {error}"));
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let [said, complained] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{arguments:?}: {said}{complained}");
    assert_eq!(complained, "", "{arguments:?}");
}
