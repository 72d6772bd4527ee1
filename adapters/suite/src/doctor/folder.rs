//! The checks of the data folder and its disk.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Finding;

/// The duration of a durable write of the disk above which every change becomes slow.
const SLOW_WRITE: Duration = Duration::from_millis(50);

/// The free space below which the data folder should be enlarged.
#[cfg(target_os = "linux")]
const LITTLE_SPACE: u64 = 1024 * 1024 * 1024;

/// The free space below which writes will soon fail.
#[cfg(target_os = "linux")]
const NO_SPACE: u64 = 64 * 1024 * 1024;

/// Checks that the data folder can be written, is private, and has space.
pub(super) fn folder_findings(folder: &Path) -> Vec<Finding> {
    let subject = "data folder";
    let shown = folder.display();
    if !folder.is_dir() {
        let text = format!("{shown} does not exist yet; the server creates it");
        return vec![Finding::warning(subject, text)];
    }
    let mut found = vec![write_finding(folder, durable_write(folder))];
    found.extend(permission_finding(folder));
    found.extend(space_finding(folder));
    found
}

fn write_finding(folder: &Path, outcome: std::io::Result<Duration>) -> Finding {
    let subject = "data folder";
    let shown = folder.display();
    match outcome {
        Err(error) => {
            let text = format!(
                "{shown} cannot be written: {error}; check its owner and that the disk is not full"
            );
            Finding::failure(subject, text)
        }
        Ok(took) if took > SLOW_WRITE => {
            let text = format!("a durable write to {shown} takes {took:.1?}; use a faster disk");
            Finding::warning(subject, text)
        }
        Ok(took) => Finding::fine(
            subject,
            format!("{shown}, a durable write takes {took:.1?}"),
        ),
    }
}

/// Writes a page to a temporary file, waits until it is on the disk, and removes the file.
fn durable_write(folder: &Path) -> std::io::Result<Duration> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let began = Instant::now();
    file.write_all(&[0; 4_096])?;
    file.as_file().sync_all()?;
    Ok(began.elapsed())
}

#[cfg(unix)]
fn permission_finding(folder: &Path) -> Option<Finding> {
    use std::os::unix::fs::PermissionsExt;

    let mode = std::fs::metadata(folder).ok()?.permissions().mode() & 0o777;
    let text = format!(
        "other users of this machine can read {}: chmod 700",
        folder.display()
    );
    (mode & 0o077 != 0).then(|| Finding::warning("permissions", text))
}

#[cfg(not(unix))]
fn permission_finding(_: &Path) -> Option<Finding> {
    None
}

#[cfg(target_os = "linux")]
fn space_finding(folder: &Path) -> Option<Finding> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(free_finding(found.f_bavail.saturating_mul(found.f_frsize)))
}

/// Compares the number of free bytes with what the suite needs.
#[cfg(target_os = "linux")]
fn free_finding(free: u64) -> Finding {
    let subject = "disk";
    let text = format!("{} MiB are free", free / (1024 * 1024));
    if free < NO_SPACE {
        Finding::failure(subject, format!("only {text}: enlarge the disk now"))
    } else if free < LITTLE_SPACE {
        Finding::warning(subject, format!("only {text}: enlarge the disk"))
    } else {
        Finding::fine(subject, text)
    }
}

#[cfg(not(target_os = "linux"))]
fn space_finding(_: &Path) -> Option<Finding> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn a_folder_is_written_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let found = folder_findings(folder.path());
        assert!(
            found
                .iter()
                .all(|one| one.severity != Severity::Failure || one.subject == "disk"),
            "{found:?}"
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let missing = folder_findings(&folder.path().join("missing"));
        assert_eq!(missing.len(), 1);
        assert_eq!(missing[0].severity, Severity::Warning, "{}", missing[0]);
    }

    #[test]
    fn a_write_that_fails_is_a_failure_and_a_slow_one_a_warning() {
        let folder = Path::new("/var/lib/core");
        let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        for (outcome, severity, part) in [
            (Err(denied), Severity::Failure, "check its owner"),
            (Ok(SLOW_WRITE * 2), Severity::Warning, "faster disk"),
            (Ok(SLOW_WRITE), Severity::Fine, "durable write"),
        ] {
            let found = write_finding(folder, outcome);
            assert_eq!(found.severity, severity, "{found}");
            assert!(found.text.contains(part), "{found}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_can_read_is_a_warning() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let set = |mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(folder.path(), permissions).unwrap();
            permission_finding(folder.path())
        };
        assert_eq!(set(0o700), None);
        let found = set(0o750).unwrap();
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.text.contains("chmod 700"), "{found}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_disk_with_little_space_is_a_warning_and_a_full_one_a_failure() {
        for (free, severity) in [
            (NO_SPACE - 1, Severity::Failure),
            (NO_SPACE, Severity::Warning),
            (LITTLE_SPACE - 1, Severity::Warning),
            (LITTLE_SPACE, Severity::Fine),
        ] {
            let found = free_finding(free);
            assert_eq!(found.severity, severity, "{found}");
        }
    }
}
