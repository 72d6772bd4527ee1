//! What `{:?}` may show.

use super::sources::{code_of, members, relative, root, rust_files};

/// Fields that hold a secret as it is. A hash or a sealed text is called one.
const SECRET: [&str; 12] = [
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
];

/// Whether a line declares a field that holds a secret as text.
fn is_secret_field(line: &str) -> bool {
    let Some((name, kind)) = line.trim().split_once(": ") else {
        return false;
    };
    let name = name.rsplit(' ').next().unwrap_or(name);
    let as_text = ["String,", "Option<String>,", "Vec<String>,", "Vec<u8>,"];
    SECRET.contains(&name) && as_text.contains(&kind)
}

/// The structs of a file that derive `Debug` and have such a field.
fn showing(code: &str) -> Vec<String> {
    let (mut derives, mut inside, mut found) = (false, None, Vec::new());
    for line in code.lines() {
        if line.starts_with("#[derive(") {
            derives = line.contains("Debug");
        } else if let Some((_, name)) = line.split_once("struct ") {
            inside = (derives && line.ends_with('{')).then(|| name.to_owned());
            derives = false;
        } else if line == "}" {
            inside = None;
        } else if is_secret_field(line) {
            found.extend(inside.clone());
        }
    }
    found
}

#[test]
fn nothing_shows_a_secret_it_holds_by_its_derived_debug() {
    let mut found = Vec::new();
    for member in members().iter().filter(|member| *member != "tests") {
        for file in rust_files(&root().join(member).join("src")) {
            let of_file = showing(&code_of(&file)).into_iter();
            let file = relative(&file, &root());
            found.extend(of_file.map(|name| format!("{file}: {name}")));
        }
    }
    assert!(found.is_empty(), "write Debug by hand for {found:#?}");
}

#[test]
fn a_struct_that_shows_its_token_is_found() {
    let shows = "#[derive(Clone, Debug)]\npub struct Shows {\n    pub(crate) token: String,\n}\n";
    assert_eq!(showing(shows), ["Shows {"]);
    assert!(showing(&shows.replace(", Debug", "")).is_empty());
    assert!(showing(&shows.replace("token", "token_hash")).is_empty());
}
