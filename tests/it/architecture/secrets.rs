//! What `{:?}` may show.

use std::collections::BTreeSet;
use std::fs;

use super::fields::{Field, fields};
use super::sources::{members, relative, root, rust_files};

/// Fields that hold a secret as it is. A hash or a sealed text is called one.
const SECRET: [&str; 15] = [
    "token",
    "password",
    "new_password",
    "current_password",
    "device_code",
    "user_code",
    "refresh_token",
    "access_token",
    "backup_codes",
    "totp_uri",
    "master_key",
    "service_key",
    "code",
    "key",
    "secret",
];

/// Fields that are called as secrets are, and hold none: codes of errors, idempotency keys, the name of an object in a bucket.
const NO_SECRET: [(&str, &str); 5] = [
    ("Issue", "code"),
    ("JobError", "code"),
    ("Deploy", "key"),
    ("DeployRequest", "key"),
    ("ObjectInfo", "key"),
];

/// What holds text or bytes, and shows them.
const AS_TEXT: [&str; 4] = ["String", "str", "Line", "u8"];

fn names(field: &Field) -> (&str, &str) {
    (&field.owner, &field.name)
}

fn is_called_secret_and_shown(field: &Field) -> bool {
    let as_text = field
        .types
        .iter()
        .any(|kind| AS_TEXT.contains(&kind.as_str()));
    field.derives_debug && SECRET.contains(&field.name.as_str()) && as_text
}

#[test]
fn nothing_shows_a_secret_it_holds_by_its_derived_debug() {
    let (mut shown, mut excepted) = (Vec::new(), BTreeSet::new());
    for member in members().iter().filter(|member| *member != "tests") {
        for file in rust_files(&root().join(member).join("src")) {
            let of_file = fields(&fs::read_to_string(&file).unwrap());
            for field in of_file
                .iter()
                .filter(|field| is_called_secret_and_shown(field))
            {
                let exception = NO_SECRET
                    .iter()
                    .find(|exception| **exception == names(field));
                match exception {
                    Some(exception) => drop(excepted.insert(exception)),
                    None => shown.push(format!("{}: {:?}", relative(&file, &root()), names(field))),
                }
            }
        }
    }
    assert!(shown.is_empty(), "write Debug by hand for {shown:#?}");
    assert_eq!(
        excepted,
        NO_SECRET.iter().collect(),
        "exceptions nothing needs"
    );
}

/// The fields of a text that a derived `Debug` would show, though they are called as secrets are.
fn shown(text: &str) -> Vec<String> {
    let shown = fields(text).into_iter().filter(is_called_secret_and_shown);
    shown
        .map(|field| format!("{}.{}", field.owner, field.name))
        .collect()
}

#[test]
fn a_struct_that_shows_its_token_is_found() {
    let shows = "#[derive(Clone, Debug)]\npub struct Shows {\n    pub(crate) token: String,\n}\n";
    assert_eq!(shown(shows), ["Shows.token"]);
    assert!(shown(&shows.replace(", Debug", "")).is_empty());
    assert!(shown(&shows.replace("token", "token_hash")).is_empty());
    assert!(shown(&shows.replace("String", "TokenHash")).is_empty());
    assert!(shown(&format!("#[cfg(test)] mod tests {{ {shows} }}")).is_empty());
    for (kind, holder) in [
        ("Option<Line<0, 64>>", "mod inner"),
        ("&'static str", "fn inner()"),
        ("Vec<u8>", "record!"),
        ("[u8; 32]", "impl Other"),
    ] {
        let inside = format!("{holder} {{ {} }}", shows.replace("String", kind));
        assert_eq!(shown(&inside), ["Shows.token"], "{inside}");
    }
}

#[test]
fn a_variant_that_shows_its_code_is_found_and_one_that_does_not_is_not() {
    let shows = "#[derive(Debug)] #[must_use] enum Proof<'a> { None, Id(String), \
        #[doc = \"x: y\"] Shown { by: UserId, code: Line<0, 64> }, Other { key: KeyId } }";
    assert_eq!(shown(shows), ["Proof.code"]);
    assert!(shown(&shows.replace("Debug", "Clone")).is_empty());
    // What one type derives is not what the next one does.
    let next = format!(
        "#[derive(Debug)] struct Unit; {}",
        shows.replace("Debug", "Clone")
    );
    assert!(shown(&next).is_empty());
}
