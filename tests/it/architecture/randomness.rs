//! What tests draw at random comes from one seed, and `tests/explore` finds the tests that draw.

use std::fs;

use super::sources::{members, relative, root, rust_files};

/// What only a test that draws at random has in its file.
const DRAWS: [&str; 2] = ["TestRunner::new(", "inject_random(seed"];

/// Calls `check` with the path and the text of every file below a `tests` folder, and of every other file's tests.
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
fn no_simulation_numbers_its_seeds_itself() {
    for_each_test_file(|path, tests| {
        assert!(
            !tests.contains("seed in 0.."),
            "{path} must take its seeds from core_domain::testing::seeds"
        );
    });
}

#[test]
fn every_test_that_draws_at_random_is_explored() {
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
    assert!(drawing > 5, "{drawing}");
}
