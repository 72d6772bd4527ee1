//! Tests of the file permissions of a SQLite database.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;

use core_domain::kernel::Timestamp;
use core_domain::testing::ManualClock;
use core_storage::sqlite::{self, SqliteConfig};

#[test]
fn sqlite_files_are_accessible_only_to_their_owner_under_any_umask() {
    // The umask belongs to the process, so the check runs in a separate process.
    for umask in ["000", "022", "077"] {
        let this = std::env::current_exe().unwrap();
        let script = format!(
            "umask {umask}; exec \"$0\" --ignored --exact permissions::check_run_by_the_test_above_under_a_umask"
        );
        let output = Command::new("sh").args(["-c", &script]).arg(this).output();
        let output = output.unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let passed = output.status.success() && text.contains("1 passed");
        assert!(passed, "umask {umask}: {text}");
    }
}

#[tokio::test]
#[ignore = "run by the test above"]
async fn check_run_by_the_test_above_under_a_umask() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
    let config = SqliteConfig::new(folder.path().join("core.db"), clock, [7; 32]);
    let store = sqlite::open(config).await.expect("SQLite opens");
    for file in ["core.db", "core.db-wal", "core.db-shm", "core.db.lock"] {
        let metadata = std::fs::metadata(folder.path().join(file)).expect(file);
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{file}");
    }
    drop(store);
}
