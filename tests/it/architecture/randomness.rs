//! Random tests take their seeds from one source, and `tests/explore` finds all of them.

use std::fs;

use super::sources::{members, relative, root, rust_files};

/// Texts that only files of tests with random seeds contain.
const DRAWS: [&str; 2] = ["TestRunner::new(", "inject_random(seed"];

/// Calls `check` with the path and the text of every file below a `tests` folder, and with the test code of every other
/// file.
fn for_each_test_file(mut check: impl FnMut(&str, &str)) {
    for member in members() {
        for file in rust_files(&root().join(member)) {
            let path = relative(&file, &root());
            let text = fs::read_to_string(&file).unwrap();
            if path.contains("architecture/") {
                continue;
            }
            let tests = match path.contains("tests/") {
                true => Some(text.as_str()),
                false => text.split_once("#[cfg(test)]").map(|(_, tests)| tests),
            };
            if let Some(tests) = tests {
                check(&path, tests);
            }
        }
    }
}

#[test]
fn simulations_take_their_seeds_from_the_seeds_function() {
    for_each_test_file(|path, tests| {
        assert!(
            !tests.contains("seed in 0.."),
            "{path} must take its seeds from core_domain::testing::seeds"
        );
    });
}

#[test]
fn every_random_test_is_explored() {
    let script = fs::read_to_string(root().join("tests/explore")).unwrap();
    let words = script.split_once("grep -rlE '").unwrap().1;
    let words = words.split_once('\'').unwrap().0.replace(r"\b", "");
    let words: Vec<_> = words
        .split('|')
        .map(|word| word.replace('\\', ""))
        .collect();
    assert!(words.iter().any(|word| word == "seeds("), "{words:?}");
    let mut drawing = 0;
    for_each_test_file(|path, tests| {
        if DRAWS.iter().any(|draw| tests.contains(draw)) {
            drawing += 1;
            let found = words.iter().any(|word| tests.contains(word));
            assert!(found, "tests/explore does not find {path}");
        }
    });
    assert_eq!(drawing, 8);
}
