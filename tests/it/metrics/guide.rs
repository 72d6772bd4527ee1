//! The table of metrics in the guide for operators.

use std::fs;
use std::path::Path;

use core_suite::Suite;

/// Returns the rows of the table, as they follow from the definitions in code.
async fn expected_rows() -> Vec<String> {
    let suite = Suite::builder().in_memory().build().await.unwrap();
    let descriptions = suite.metrics().descriptions();
    suite.shutdown().await;
    let row = |known: &core_http::kernel::metrics::Description| {
        let labels: Vec<String> = known
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let (name, kind, help) = (known.name, known.kind, known.help);
        format!("| `{name}` | {kind} | {} | {help} |", labels.join(", "))
    };
    descriptions.iter().map(row).collect()
}

#[tokio::test]
async fn the_guide_describes_exactly_the_metrics_of_a_suite() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let guide = root.join("adapters/suite/src/guide/operations.md");
    let guide = fs::read_to_string(guide).unwrap();
    let is_row = |line: &&str| line.starts_with("| `core_") || line.starts_with("| `process_");
    let rows: Vec<&str> = guide.lines().filter(is_row).collect();
    let expected = expected_rows().await;
    assert!(
        rows == expected,
        "the table in guide/operations.md must have these rows:\n{}",
        expected.join("\n")
    );
}
