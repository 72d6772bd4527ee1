//! The location of the `workerd` program.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A `workerd` program that exists and can be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workerd {
    program: PathBuf,
}

impl Workerd {
    /// Returns the program at this path. If the path is the start script of the npm package, returns the program that
    /// the script would start. Returns `None` if no executable file exists.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok().filter(|path| is_program(path))?;
        let program = if is_script(&path) {
            program_of_script(&path)?
        } else {
            path
        };
        Some(Self { program })
    }

    /// Returns the path of the program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }
}

/// Searches for `workerd` in the folders of a search path (`PATH`), then in `node_modules/.bin` next to the data
/// folder, where npm would install it.
#[must_use]
pub fn find_workerd(search_path: Option<&OsStr>, data_folder: &Path) -> Option<Workerd> {
    let listed = search_path.into_iter().flat_map(std::env::split_paths);
    // An empty entry would mean the current folder of the process.
    let listed = listed.filter(|folder| folder.is_absolute());
    let beside = data_folder.parent().unwrap_or(Path::new(""));
    let folders = listed.chain([beside.join("node_modules/.bin")]);
    folders
        .map(|folder| folder.join("workerd"))
        .find_map(|path| Workerd::at(&path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(_: &Path) -> bool {
    false
}

fn is_script(path: &Path) -> bool {
    let mut start = [0; 2];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *b"#!"
}

/// Returns the program that the script of the npm package would start with Node.js. `workerd/bin/workerd` is next to
/// `@cloudflare/workerd-{system}/bin/workerd`.
fn program_of_script(script: &Path) -> Option<PathBuf> {
    let modules = script.ancestors().nth(3)?;
    let system = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "linux-64",
        ("linux", "aarch64") => "linux-arm64",
        ("macos", "x86_64") => "darwin-64",
        ("macos", "aarch64") => "darwin-arm64",
        _ => return None,
    };
    let program = modules.join(format!("@cloudflare/workerd-{system}/bin/workerd"));
    is_program(&program).then_some(program)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{OpenOptionsExt, symlink};

    use super::*;

    fn program(path: &Path, content: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = fs::OpenOptions::new();
        let mut file = file
            .create_new(true)
            .write(true)
            .mode(0o755)
            .open(path)
            .unwrap();
        std::io::Write::write_all(&mut file, content.as_bytes()).unwrap();
    }

    #[test]
    fn search_path_is_preferred_to_node_modules() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let data = root.join("data");
        let none = find_workerd(Some(root.as_os_str()), &data);
        assert_eq!(none, None);

        let installed = root.join("node_modules/.bin/workerd");
        program(&installed, "binary");
        let found = |path: &str| find_workerd(Some(root.join(path).as_os_str()), &data).unwrap();
        assert_eq!(found("bin").program(), installed);
        program(&root.join("bin/workerd"), "binary");
        assert_eq!(found("bin").program(), root.join("bin/workerd"));
    }

    #[test]
    fn npm_script_is_replaced_by_the_program_it_starts() {
        let folder = tempfile::tempdir().unwrap();
        let modules = folder.path().canonicalize().unwrap().join("node_modules");
        program(&modules.join("workerd/bin/workerd"), "#!/usr/bin/env node");
        fs::create_dir_all(modules.join(".bin")).unwrap();
        symlink("../workerd/bin/workerd", modules.join(".bin/workerd")).unwrap();
        assert_eq!(Workerd::at(&modules.join(".bin/workerd")), None);

        let system = program_of_script(&modules.join("workerd/bin/workerd"));
        assert_eq!(system, None, "no program is there yet");
        for system in ["linux-64", "linux-arm64", "darwin-64", "darwin-arm64"] {
            program(
                &modules.join(format!("@cloudflare/workerd-{system}/bin/workerd")),
                "binary",
            );
        }
        let found = Workerd::at(&modules.join(".bin/workerd")).unwrap();
        assert!(
            found.program().starts_with(modules.join("@cloudflare")),
            "{found:?}"
        );
    }

    #[test]
    fn files_that_are_not_executable_are_not_found() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("workerd"), "text").unwrap();
        assert_eq!(Workerd::at(&folder.path().join("workerd")), None);
        assert_eq!(Workerd::at(folder.path()), None);
    }
}
