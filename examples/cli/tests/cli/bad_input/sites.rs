//! Folders that are no site.

use std::fs;
use std::path::Path;

use super::assert_refused;
use crate::program::Program;

fn site() -> Program {
    let program = Program::new();
    program.write("dist/index.html", "<h1>Hello</h1>");
    program
}

#[test]
fn a_folder_that_is_missing_empty_or_a_file_is_refused() {
    let program = site();
    fs::create_dir(program.path("empty")).unwrap();
    for (folder, words) in [
        ("missing", ["missing", "core-cli deploy DIR"]),
        ("dist/index.html", ["not a folder", "core-cli deploy DIR"]),
        ("empty", ["index.html", "core-cli deploy dist"]),
        ("", ["DIR", "value"]),
    ] {
        assert_refused(&program, &["deploy", folder], &words);
    }
}

#[test]
fn more_files_than_the_server_accepts_are_refused() {
    let program = site();
    for number in 0..20_000 {
        fs::write(program.path(&format!("dist/{number}")), "").unwrap();
    }
    assert_refused(
        &program,
        &["deploy", "dist"],
        &["20000 files", ".coreignore"],
    );
    // The limit itself is accepted.
    fs::remove_file(program.path("dist/0")).unwrap();
    let server = super::unused_server();
    program.run_at(&server, &["deploy", "dist"]).expect(1);
    assert!(!server.requests().is_empty());
}

#[test]
fn a_path_that_is_too_long_is_refused() {
    let program = site();
    let folder = ["x".repeat(200).as_str(); 5].join("/");
    program.write(&format!("dist/{folder}/{}", "y".repeat(20)), "");
    assert_refused(
        &program,
        &["deploy", "dist"],
        &["1024 bytes", ".coreignore"],
    );
}

#[test]
fn two_names_that_differ_only_in_their_encoding_are_refused() {
    let program = site();
    program.write("dist/caf\u{e9}", "");
    program.write("dist/cafe\u{301}", "");
    assert_refused(&program, &["deploy", "dist"], &["caf\u{e9}", "Rename"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_unicode_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let program = site();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    fs::write(program.path("dist").join(name), "").unwrap();
    assert_refused(&program, &["deploy", "dist"], &["caf", "Rename"]);
}

#[cfg(unix)]
#[test]
fn links_and_special_files_are_refused() {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    let refused = |words: &[&str], create: &dyn Fn(&Path)| {
        let program = site();
        fs::create_dir(program.path("dist/sub")).unwrap();
        create(&program.path("dist/odd"));
        assert_refused(
            &program,
            &["deploy", "dist"],
            &[&["odd", ".coreignore"], words].concat(),
        );
    };
    refused(&["leads out of the site"], &|path| {
        symlink("/etc/hostname", path).unwrap()
    });
    refused(&["leads nowhere"], &|path| {
        symlink("missing", path).unwrap()
    });
    refused(&["does not lead to a file"], &|path| {
        symlink("sub", path).unwrap()
    });
    refused(&["neither a file nor a folder"], &|path| {
        drop(UnixListener::bind(path).unwrap())
    });
}

#[test]
fn a_list_of_exclusions_that_cannot_be_read_is_refused() {
    for content in [&b"ok\na{b\n"[..], b"\xff\n"] {
        let program = site();
        fs::write(program.path("dist/.coreignore"), content).unwrap();
        assert_refused(&program, &["deploy", "dist"], &[".coreignore"]);
    }
    let program = site();
    fs::create_dir(program.path("dist/.coreignore")).unwrap();
    assert_refused(&program, &["deploy", "dist"], &[".coreignore", "folder"]);
}
