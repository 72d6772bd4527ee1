//! Rules for the language of comments, Markdown pages and OpenAPI documents. A newcomer must understand every sentence
//! at the first reading, so words and sentence forms that readers stumble over are refused.

use std::fs;

use serde_json::Value;

use super::sources::{markdown_files, members, relative, root, rust_files};

/// Words and phrases that readers stumbled over, in lower case, and what to write instead.
const REFUSED_PHRASES: &[(&str, &str)] = &[
    ("whoever", "the caller, the user"),
    ("nobody", "no user, no caller, no one"),
    ("somebody", "a user, a person, someone"),
    ("under way", "in progress"),
    ("meanwhile", "in the meantime, since then"),
    ("midway", "before it has finished"),
    ("astray", "lost"),
    ("put right", "fixed"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("sees to", "handles"),
    ("see to", "handle"),
    ("none of ours", "of another tenant"),
    ("of ours", "of this crate"),
    ("of theirs", "their own"),
    ("of one's own", "own"),
    ("is over", "has ended"),
    ("are over", "have ended"),
    ("as it came", "unchanged"),
    ("says so", "states it"),
    ("tells of", "reports"),
    ("is told", "is notified"),
    ("are told", "are notified"),
    ("not said", "not stated"),
    ("is wanted", "is required"),
    ("gives up", "stops"),
    ("gave up", "stopped"),
    ("the way of", "the steps of"),
    ("what became of", "the outcome of"),
    ("what it is", "its type"),
    ("what they are", "their types"),
    ("what there is", "the existing ones"),
];

/// Words that turn the order of a sentence around when it begins with them.
const REFUSED_FIRST_WORDS: &[&str] = &["Of", "What", "Whom", "Who", "Whose", "Whether", "Behind"];

/// Words after which the order of the sentence is plain again, as in "Whether the record is deleted."
const ARTICLES: &[&str] = &["a", "an", "the", "in", "of", "with"];

/// The fewest words of a description that say what a property means.
const MIN_DESCRIPTION_WORDS: usize = 4;

/// Returns the sentences that readers stumble over in a line of prose.
fn problems(prose: &str) -> Vec<String> {
    // Names in code are not words.
    let without_code: String = prose.split('`').step_by(2).collect();
    let words: String = without_code
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || c == '\'' {
                c
            } else {
                ' '
            }
        })
        .collect();
    let words: Vec<&str> = words.split_whitespace().collect();
    let text = format!(" {} ", words.join(" ").to_lowercase());
    let phrases = REFUSED_PHRASES.iter();
    let phrases = phrases.filter(|(phrase, _)| text.contains(&format!(" {phrase} ")));
    let mut problems: Vec<String> = phrases
        .map(|(phrase, better)| format!("\"{phrase}\": write \"{better}\""))
        .collect();
    let mut words = prose.split(' ');
    let first = words.next().unwrap_or_default();
    let is_plain = words.next().is_none_or(|second| ARTICLES.contains(&second));
    if REFUSED_FIRST_WORDS.contains(&first) && !is_plain && !prose.contains('?') {
        problems.push(format!("begins with \"{first}\": begin with the subject"));
    }
    problems
}

/// Returns the prose of a source file: its comments without code blocks, with their line numbers.
fn comments(source: &str) -> Vec<(usize, &str)> {
    let mut is_code_block = false;
    let mut comments = Vec::new();
    for (number, line) in source.lines().enumerate() {
        let Some(text) = line.trim().strip_prefix("//") else {
            is_code_block = false;
            continue;
        };
        let text = text.trim_start_matches(['/', '!']).trim();
        if text.starts_with("```") {
            is_code_block = !is_code_block;
        } else if !is_code_block {
            comments.push((number + 1, text));
        }
    }
    comments
}

/// Returns the lines of a Markdown page without code blocks, with their numbers.
fn paragraphs(page: &str) -> Vec<(usize, &str)> {
    let mut is_code_block = false;
    let mut lines = Vec::new();
    for (number, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code_block = !is_code_block;
        } else if !is_code_block {
            lines.push((
                number + 1,
                line.trim_start_matches(['-', '*', '>', '|', '#', ' ']),
            ));
        }
    }
    lines
}

/// Collects the descriptions and summaries of a document, with their paths in it.
fn descriptions(value: &Value, path: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let is_text = matches!(name.as_str(), "description" | "summary");
                match field {
                    Value::String(text) if is_text => found.push((path.to_owned(), text.clone())),
                    _ => descriptions(field, &format!("{path}/{name}"), found),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                descriptions(item, path, found);
            }
        }
        _ => {}
    }
}

/// Returns whether a property says what it means: by its own description, by that of the component it refers to, or because
/// it is a constant or accepts any value.
fn is_explained(property: &Value, document: &Value) -> bool {
    let is_long = |text: &Value| {
        let words = text.as_str().unwrap_or_default().split_whitespace();
        words.count() >= MIN_DESCRIPTION_WORDS
    };
    let accepts_anything =
        property.is_boolean() || property.as_object().is_some_and(serde_json::Map::is_empty);
    let component = property["$ref"].as_str().and_then(|target| {
        let path = target.strip_prefix('#')?;
        document.pointer(path)
    });
    accepts_anything
        || property.get("const").is_some()
        || is_long(&property["description"])
        || component.is_some_and(|component| is_long(&component["description"]))
}

/// Collects the properties of the schemas in a document that do not say what they mean.
fn vague_properties(value: &Value, document: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let properties = fields.get("properties").and_then(Value::as_object);
            // The description of a variant covers its tag and its content.
            let is_variant = fields
                .get("properties")
                .is_some_and(|p| p["type"]["const"].is_string())
                && fields.contains_key("description");
            for (name, property) in properties.into_iter().flatten() {
                if !is_variant && !is_explained(property, document) {
                    let description = &property["description"];
                    found.push(format!("{path}/{name}: {description}"));
                }
            }
            for (name, field) in fields {
                vague_properties(field, document, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for item in items {
                vague_properties(item, document, path, found);
            }
        }
        _ => {}
    }
}

/// Returns the OpenAPI documents with their file names.
fn documents() -> Vec<(String, Value)> {
    let folder = root().join("core-http/openapi");
    let files = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut documents: Vec<(String, Value)> = files
        .map(|path| {
            let document = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            (relative(&path, &folder), document)
        })
        .collect();
    documents.sort_by(|(a, _), (b, _)| a.cmp(b));
    assert!(!documents.is_empty(), "the OpenAPI documents are missing");
    documents
}

#[test]
fn comments_use_plain_words_in_plain_order() {
    let mut found = Vec::new();
    for folder in members() {
        for file in rust_files(&root().join(folder)) {
            // This file lists the words.
            if file.ends_with("architecture/prose.rs") {
                continue;
            }
            let source = fs::read_to_string(&file).unwrap();
            for (line, text) in comments(&source) {
                let place = relative(&file, &root());
                found.extend(
                    problems(text)
                        .iter()
                        .map(|problem| format!("{place}:{line}: {problem}")),
                );
            }
        }
    }
    assert!(
        found.is_empty(),
        "{} places:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn markdown_pages_use_plain_words_in_plain_order() {
    let mut found = Vec::new();
    for file in markdown_files() {
        let page = fs::read_to_string(&file).unwrap();
        for (line, text) in paragraphs(&page) {
            let place = relative(&file, &root());
            found.extend(
                problems(text)
                    .iter()
                    .map(|problem| format!("{place}:{line}: {problem}")),
            );
        }
    }
    assert!(
        found.is_empty(),
        "{} places:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn openapi_texts_use_plain_words_in_plain_order() {
    let mut found = Vec::new();
    for (file, document) in documents() {
        let mut texts = Vec::new();
        descriptions(&document, "", &mut texts);
        for (path, text) in texts {
            for problem in text.lines().flat_map(problems) {
                found.push(format!("{file}{path}: {problem}"));
            }
        }
    }
    assert!(
        found.is_empty(),
        "{} places:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn every_openapi_operation_has_a_summary_and_a_description() {
    for (file, document) in documents() {
        let paths = document["paths"].as_object().unwrap();
        for (path, methods) in paths {
            for (method, operation) in methods.as_object().unwrap() {
                for text in ["summary", "description"] {
                    let words = operation[text].as_str().unwrap_or_default();
                    let words = words.split_whitespace().count();
                    assert!(words >= 2, "{file}: {method} {path} has no {text}");
                }
            }
        }
    }
}

#[test]
fn every_openapi_property_says_what_it_means() {
    let mut found = Vec::new();
    for (file, document) in documents() {
        let mut vague = Vec::new();
        vague_properties(&document, &document, "", &mut vague);
        found.extend(
            vague
                .into_iter()
                .map(|property| format!("{file}{property}")),
        );
    }
    assert!(
        found.is_empty(),
        "{} properties:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn refused_words_and_orders_are_found() {
    assert_eq!(
        problems("Deletes the record that the caller names."),
        [""; 0]
    );
    assert_eq!(problems("Whose turn is it?"), [""; 0]);
    for bad in [
        "Whoever asks gets it.",
        "The job is under way.",
        "What was taken away.",
        "Its time is over, so it ends.",
    ] {
        assert_eq!(problems(bad).len(), 1, "{bad}");
    }
}
