//! The contract of the gateway has numbered lines. The tests of a line have its number in their names, such as
//! `line_07_request_ids_are_accepted_only_if_well_formed`.

use std::collections::BTreeMap;
use std::fs;

use super::sources::{members, relative, root, rust_files};

/// The number of lines of the contract.
const LINES: usize = 58;

/// The beginning of the name of a test of a line.
const PREFIX: &str = "line_";

/// The lines without such a test, and what proves them.
const PROVED_OTHERWISE: &[(usize, &str)] = &[(58, "measured by the benchmarks in tests/benches")];

/// Returns the name of the function that a line of source code declares, if the name begins with the prefix and a digit.
fn declared_name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let name = line.strip_prefix("async ").unwrap_or(line);
    let name = name.strip_prefix("fn ")?.split('(').next()?;
    let number = name.strip_prefix(PREFIX)?;
    number
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(name)
}

/// Returns the number in the name of a test.
fn number_of(name: &str) -> Option<usize> {
    let number = name.strip_prefix(PREFIX)?.split_once('_')?.0;
    (number.len() == 2).then(|| number.parse().ok())?
}

/// Returns the tests with such a name by number. Asserts that each is a test of a line that exists.
fn tests_by_line() -> BTreeMap<usize, Vec<String>> {
    let mut tests = BTreeMap::<usize, Vec<String>>::new();
    for member in members() {
        for file in rust_files(&root().join(member)) {
            let text = fs::read_to_string(&file).unwrap();
            let file = relative(&file, &root());
            let mut before = "";
            for line in text.lines() {
                if let Some(name) = declared_name(line) {
                    let number = number_of(name).filter(|number| (1..=LINES).contains(number));
                    let number = number.unwrap_or_else(|| panic!("{file}: {name} has no line"));
                    let is_test = before.contains("#[test]") || before.contains("#[tokio::test");
                    assert!(is_test, "{file}: {name} is no test");
                    tests
                        .entry(number)
                        .or_default()
                        .push(format!("{file}: {name}"));
                }
                before = line;
            }
        }
    }
    tests
}

#[test]
fn every_line_of_the_gateway_contract_has_a_test_with_its_number() {
    let tests = tests_by_line();
    for line in 1..=LINES {
        let proof = PROVED_OTHERWISE.iter().find(|(number, _)| *number == line);
        let named = tests.get(&line);
        assert!(
            named.is_some() || proof.is_some(),
            "line {line} has no test named {PREFIX}{line:02}_.."
        );
        assert!(
            named.is_none() || proof.is_none(),
            "line {line} has tests, so remove it from the exemptions: {named:?}"
        );
    }
}

#[test]
fn the_number_of_a_test_has_two_digits() {
    assert_eq!(
        declared_name("    async fn line_07_ids() {"),
        Some("line_07_ids")
    );
    assert_eq!(declared_name("fn line_amounts() {"), None);
    assert_eq!(number_of("line_07_ids"), Some(7));
    for wrong in ["line_7_ids", "line_007_ids", "line_ids", "line_0x_ids"] {
        assert_eq!(number_of(wrong), None, "{wrong}");
    }
}
