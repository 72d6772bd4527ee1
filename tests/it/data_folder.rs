//! The permissions of the server's data folder.

use std::os::unix::fs::PermissionsExt;

use crate::world::Server;

#[tokio::test]
async fn the_data_folder_of_a_server_is_accessible_to_its_owner_only() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("new/data");
    let server = Server::start(&data, &[]).await;
    assert!(server.terminate().await.success());
    let mut open = vec![parent.path().join("new")];
    while let Some(path) = open.pop() {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, expected, "{}", path.display());
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            open.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
}
