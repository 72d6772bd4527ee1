//! The allowed imports between the folders of a crate, and the absence of import cycles between files.

use super::imports::{Imports, import_cycles, imports};
use super::sources::{members, root};

/// The modules of the domain. Each may import the modules before it in this list, and itself.
const DOMAIN: [&str; 17] = [
    "kernel",
    "shared",
    "iam",
    "provisioning",
    "registry",
    "cli",
    "stacks",
    "gateway",
    // The key that gives access to the repositories. The port requires it, and only the scopes have it.
    "access/key",
    "port",
    "access",
    "use_case/shared",
    "use_case/stacks",
    "use_case/iam",
    "use_case/provisioning",
    "use_case/registry",
    "use_case/cli",
];

fn imports_of(krate: &str) -> Imports {
    imports(&root().join(krate).join("src"))
}

fn edges(imports: &Imports) -> impl Iterator<Item = (&str, &str)> {
    let files = imports.iter();
    files.flat_map(|(file, imported)| {
        imported
            .keys()
            .map(move |from| (file.as_str(), from.as_str()))
    })
}

/// Returns the index of a file's module in the list.
fn home(file: &str) -> Option<usize> {
    let module = file.trim_end_matches(".rs");
    let homes = DOMAIN.iter().enumerate();
    let homes =
        homes.filter(|(_, home)| module == **home || module.starts_with(&format!("{home}/")));
    homes.max_by_key(|(_, home)| home.len()).map(|(at, _)| at)
}

#[test]
fn files_have_no_import_cycles() {
    let mut found = Vec::new();
    for krate in members() {
        let imports = imports_of(&krate);
        for circle in import_cycles(&imports) {
            found.push(format!("{krate}: an import cycle"));
            let tied =
                edges(&imports).filter(|tied| circle.contains(tied.0) && circle.contains(tied.1));
            found.extend(
                tied.map(|(file, from)| format!("{file} -> {from}: {:?}", imports[file][from])),
            );
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn an_import_cycle_is_found() {
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
        ("a.rs", "pub struct A(crate::b::B);"),
        ("b.rs", "record! { pub struct B { c: u8 } } use super::c;"),
        ("c.rs", "use crate::{A as Other, b}; fn f(_: Other) {}"),
    ] {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    let imports = imports(folder.path());
    let found: Vec<Vec<_>> = import_cycles(&imports)
        .into_iter()
        .map(|circle| circle.into_iter().collect())
        .collect();
    assert_eq!(found, [["a.rs", "b.rs", "c.rs"]]);
    assert!(
        !imports.contains_key("lib.rs"),
        "a re-export is not an import"
    );
}

#[test]
fn modules_of_the_domain_import_only_lower_modules() {
    let imports = imports_of("core-domain");
    assert!(imports.len() > 100);
    for (file, from) in edges(&imports) {
        let (Some(above), Some(below)) = (home(file), home(from)) else {
            continue;
        };
        assert!(
            below <= above,
            "{file} imports {from}, which is a higher module: {:?}",
            imports[file][from]
        );
    }
}

#[test]
fn http_services_import_the_kernel_and_not_each_other() {
    let allowed = [
        ("kernel", &[][..]),
        ("gateway", &["kernel"]),
        // The gateway authenticates through IAM in the same process.
        ("iam", &["kernel", "platform_status", "gateway"]),
        ("registry", &["kernel"]),
        ("provisioning", &["kernel", "platform_status"]),
        ("cli", &["kernel"]),
        ("stacks", &["kernel"]),
    ];
    let imports = imports_of("core-http");
    for (file, from) in edges(&imports) {
        let folder = |file: &str| file.split(['/', '.']).next().unwrap_or_default().to_owned();
        let (above, below) = (folder(file), folder(from));
        if let Some((_, may_import)) = allowed.iter().find(|(home, _)| *home == above) {
            let allowed = below == above || may_import.contains(&below.as_str());
            assert!(allowed, "{file} imports {from}: {:?}", imports[file][from]);
        }
    }
}
