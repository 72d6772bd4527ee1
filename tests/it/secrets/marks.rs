//! The secrets of a test, and a search for them in every encoding.

use std::collections::BTreeSet;

use aho_corasick::AhoCorasick;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;

/// A secret of this length is searched by its halves, each of which is long enough.
const LONG: usize = 32;

#[derive(Debug)]
struct Mark {
    what: &'static str,
    secret: String,
    /// True if the store keeps it in plain text: a code that users enter, which is looked up by its value and valid for
    /// minutes.
    kept: bool,
}

/// The secrets of a test, and responses that must not contain any of them.
#[derive(Debug, Default)]
pub(super) struct Marks {
    marks: Vec<Mark>,
    answers: Vec<(String, Bytes)>,
}

impl Marks {
    /// Adds a secret.
    pub(super) fn text(&mut self, what: &'static str, secret: &str) {
        self.mark(what, secret, false);
    }

    /// Adds a secret that only the store may keep in plain text.
    pub(super) fn stored_text(&mut self, what: &'static str, secret: &str) {
        self.mark(what, secret, true);
    }

    fn mark(&mut self, what: &'static str, secret: &str, kept: bool) {
        assert!(
            secret.len() >= 8 && secret.is_ascii(),
            "{what} is too short to search for"
        );
        if !self.marks.iter().any(|known| known.secret == secret) {
            let secret = secret.to_owned();
            self.marks.push(Mark { what, secret, kept });
        }
    }

    /// Adds a response that must not contain any secret, not even one that is added later.
    pub(super) fn answer(&mut self, name: String, body: Bytes) {
        self.answers.push((name, body));
    }

    pub(super) fn absent_from_answers(&self) {
        assert!(self.answers.len() > 60, "{} answers", self.answers.len());
        let search = self.search();
        for (name, body) in &self.answers {
            search.finds_nothing_in(name, body);
        }
    }

    /// Returns the search for every secret.
    pub(super) fn search(&self) -> Search {
        Search::for_each(self.marks.iter())
    }

    /// Returns the search for the secrets that the store may not keep.
    pub(super) fn search_for_store(&self) -> Search {
        Search::for_each(self.marks.iter().filter(|mark| !mark.kept))
    }
}

/// A search for secrets in every encoding.
#[derive(Debug)]
pub(super) struct Search([Needles; 2]);

/// Patterns that are searched in one way, and the secret and encoding of each.
#[derive(Debug)]
struct Needles {
    automaton: AhoCorasick,
    of_patterns: Vec<(&'static str, &'static str)>,
}

impl Search {
    fn for_each<'m>(marks: impl Iterator<Item = &'m Mark>) -> Self {
        let (mut sought, mut needles) = (0, Vec::new());
        for mark in marks {
            sought += 1;
            let spelled = parts(&mark.secret).flat_map(spellings);
            needles.extend(spelled.map(|(how, needle)| (mark.what, how, needle)));
        }
        assert!(sought > 30, "{sought} secrets");
        let (hex, exact) = needles.into_iter().partition(|(_, how, _)| *how == "hex");
        Self([Needles::new(hex, true), Needles::new(exact, false)])
    }

    /// Checks that the content contains no secret.
    pub(super) fn finds_nothing_in(&self, place: &str, content: &[u8]) {
        let found: BTreeSet<_> = self
            .0
            .iter()
            .flat_map(|needles| needles.of(content))
            .collect();
        assert!(found.is_empty(), "{place} holds {found:?}");
    }
}

impl Needles {
    fn new(needles: Vec<(&'static str, &'static str, String)>, any_case: bool) -> Self {
        let mut automaton = AhoCorasick::builder();
        let automaton = automaton.ascii_case_insensitive(any_case);
        let patterns = needles.iter().map(|(_, _, needle)| needle);
        Self {
            automaton: automaton.build(patterns).unwrap(),
            of_patterns: needles.iter().map(|(what, how, _)| (*what, *how)).collect(),
        }
    }

    /// Returns the secret and the encoding of each match.
    fn of<'n>(
        &'n self,
        content: &'n [u8],
    ) -> impl Iterator<Item = (&'static str, &'static str)> + 'n {
        let met = self.automaton.find_overlapping_iter(content);
        met.map(|met| self.of_patterns[met.pattern()])
    }
}

/// Splits a long secret into halves, so that a truncated secret is found as well. The prefix of an API key is stored on
/// purpose.
fn parts(secret: &str) -> impl Iterator<Item = &str> {
    let (first, second) = match secret.len() {
        length if length >= LONG => secret.split_at(length / 2),
        _ => (secret, ""),
    };
    [first, second].into_iter().filter(|part| !part.is_empty())
}

fn spellings(text: &str) -> Vec<(&'static str, String)> {
    let mut spellings = vec![
        ("plain", text.to_owned()),
        ("percent-encoded", percent_encoded(text, "%20")),
        ("form-encoded", percent_encoded(text, "+")),
    ];
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    spellings.push(("hex", hex));
    for (how, engine) in [
        ("base64", &STANDARD_NO_PAD),
        ("base64url", &URL_SAFE_NO_PAD),
    ] {
        spellings.extend((0..3).map(|before| (how, inside_base64(engine, text, before))));
    }
    spellings
}

/// Returns the part of a base64 encoding that depends on the text alone, with `before` bytes before the text and other
/// bytes after it.
fn inside_base64(engine: &impl Engine, text: &str, before: usize) -> String {
    let encoded = engine.encode([&vec![0; before], text.as_bytes()].concat());
    let begins = (before * 8).div_ceil(6);
    let ends = (before + text.len()) * 8 / 6;
    encoded[begins..ends].to_owned()
}

fn percent_encoded(text: &str, blank: &str) -> String {
    let encoded = text.bytes().map(|byte| match byte {
        b' ' => blank.to_owned(),
        b if b.is_ascii_alphanumeric() || b"-._~".contains(&b) => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    });
    encoded.collect()
}

#[test]
fn a_secret_is_found_in_every_encoding() {
    let secret = "p4ss w+rd/and more";
    let mut marks = Marks::default();
    for n in 0..40 {
        marks.text("filler", &format!("filler number {n}"));
    }
    marks.text("password", secret);
    let search = marks.search();
    let found = |content: Vec<u8>| {
        std::panic::catch_unwind(|| search.finds_nothing_in("here", &content)).is_err()
    };
    assert!(!found(b"nothing of it, p4ss w+rd/and mor".to_vec()));
    let around = format!("a{secret}b");
    let hex: String = around.bytes().map(|byte| format!("{byte:02X}")).collect();
    for written in [
        around.clone(),
        hex,
        "q=p4ss%20w%2Brd%2Fand%20more&".to_owned(),
        "q=p4ss+w%2Brd%2Fand+more&".to_owned(),
        STANDARD_NO_PAD.encode(secret),
        STANDARD_NO_PAD.encode(&around),
        URL_SAFE_NO_PAD.encode(format!("aa{secret}bbb")),
    ] {
        assert!(found(written.clone().into_bytes()), "{written}");
    }
}
