//! Secrets must not be visible in `{:?}` output.

use std::collections::BTreeSet;
use std::fs;

use super::fields::{Field, fields};
use super::sources::{members, relative, root, rust_files};

/// Names of fields that hold a secret in plain text. Hashed or encrypted values have other names.
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

/// Fields with such a name that hold no secret: error codes, idempotency keys, the name of an object in a bucket.
const NO_SECRET: [(&str, &str); 6] = [
    ("ApiError", "code"),
    ("Issue", "code"),
    ("JobError", "code"),
    ("Deploy", "key"),
    ("DeployRequest", "key"),
    ("ObjectInfo", "key"),
];

/// Types that hold text or bytes, and show them in `Debug` output.
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
fn no_derived_debug_shows_a_secret() {
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
    assert!(shown.is_empty(), "implement Debug by hand for {shown:#?}");
    assert_eq!(
        excepted,
        NO_SECRET.iter().collect(),
        "exceptions that are not needed"
    );
}

/// Returns the fields whose names mark them as secrets and that a derived `Debug` would show.
fn visible_secrets(text: &str) -> Vec<String> {
    let shown = fields(text).into_iter().filter(is_called_secret_and_shown);
    shown
        .map(|field| format!("{}.{}", field.owner, field.name))
        .collect()
}

#[test]
fn a_struct_that_shows_its_token_is_found() {
    let shows = "#[derive(Clone, Debug)]\npub struct Shows {\n    pub(crate) token: String,\n}\n";
    assert_eq!(visible_secrets(shows), ["Shows.token"]);
    assert!(visible_secrets(&shows.replace(", Debug", "")).is_empty());
    assert!(visible_secrets(&shows.replace("token", "token_hash")).is_empty());
    assert!(visible_secrets(&shows.replace("String", "TokenHash")).is_empty());
    assert!(visible_secrets(&format!("#[cfg(test)] mod tests {{ {shows} }}")).is_empty());
    for (kind, holder) in [
        ("Option<Line<0, 64>>", "mod inner"),
        ("&'static str", "fn inner()"),
        ("Vec<u8>", "record!"),
        ("[u8; 32]", "impl Other"),
    ] {
        let inside = format!("{holder} {{ {} }}", shows.replace("String", kind));
        assert_eq!(visible_secrets(&inside), ["Shows.token"], "{inside}");
    }
}

#[test]
fn an_enum_variant_that_shows_its_code_is_found() {
    let shows = "#[derive(Debug)] #[must_use] enum Proof<'a> { None, Id(String), \
        #[doc = \"x: y\"] Shown { by: UserId, code: Line<0, 64> }, Other { key: KeyId } }";
    assert_eq!(visible_secrets(shows), ["Proof.code"]);
    assert!(visible_secrets(&shows.replace("Debug", "Clone")).is_empty());
    // The derives of one type do not apply to the next one.
    let next = format!(
        "#[derive(Debug)] struct Unit; {}",
        shows.replace("Debug", "Clone")
    );
    assert!(visible_secrets(&next).is_empty());
}
