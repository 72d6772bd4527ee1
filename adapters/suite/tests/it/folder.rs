//! The contents of a suite's data folder.

use crate::archives::{gz, tar_with};
use crate::world::World;

#[cfg(unix)]
fn modes(path: &std::path::Path, seen: &mut Vec<String>) {
    use std::os::unix::fs::PermissionsExt;
    let mode = path.metadata().unwrap().permissions().mode() & 0o777;
    let expected = if path.is_dir() { 0o700 } else { 0o600 };
    assert_eq!(mode, expected, "{}", path.display());
    seen.push(path.file_name().unwrap().to_string_lossy().into_owned());
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            modes(&entry.unwrap().path(), seen);
        }
    }
}

#[cfg(all(unix, feature = "sqlite"))]
#[tokio::test]
async fn the_data_folder_is_accessible_to_its_owner_only() {
    let place = tempfile::tempdir().unwrap();
    let database = place.path().join("data/core.sqlite");
    let suite = crate::world::builder(place.path()).sqlite(database);
    let world = World {
        suite: suite.build().await.unwrap(),
        folder: place,
    };
    let platform = world.platform("shop").await;
    let deployment = world
        .deploy(
            &platform,
            "main",
            "application/octet-stream",
            &gz(&tar_with(|_| {})),
        )
        .await;
    world.live(&platform, &deployment.expect(202)).await;
    let mut seen = Vec::new();
    modes(&world.folder.path().join("data"), &mut seen);
    for name in [
        "core.sqlite",
        "core.sqlite-wal",
        "secret",
        "uploads",
        "pages",
    ] {
        assert!(seen.iter().any(|known| known == name), "{name} of {seen:?}");
    }
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_session_is_valid_after_a_restart() {
    use serde_json::Value;

    let place = tempfile::tempdir().unwrap();
    let database = place.path().join("data/core.sqlite");
    let suite = crate::world::builder(place.path()).sqlite(&database);
    let mut world = World {
        suite: suite.build().await.unwrap(),
        folder: place,
    };
    let token = world.signed_up().await;
    let suite = crate::world::builder(world.folder.path()).sqlite(database);
    world.suite.shutdown().await;
    world.suite = suite.build().await.unwrap();
    let path = "/api/v1/platforms/none";
    let _ = world
        .call("GET", path, &token, Value::Null)
        .await
        .expect(404);
    let _ = world
        .call("GET", path, "forged", Value::Null)
        .await
        .expect(401);
}

#[tokio::test]
async fn the_retention_setting_limits_the_old_deployments() {
    let world = World::with(|builder| builder.settings(|settings| settings.retention.previous = 1));
    let world = world.await;
    let platform = world.platform("shop").await;
    for n in 0..4_u8 {
        let upload = tar_with(|builder| {
            let mut header = tar::Header::new_gnu();
            header.set_size(1);
            builder
                .append_data(&mut header, "dist/n", &[n][..])
                .unwrap();
        });
        let deployment = world
            .deploy(&platform, "production", "application/octet-stream", &upload)
            .await;
        world.live(&platform, &deployment.expect(202)).await;
    }
    let pages = world.folder.path().join("data/infrastructure/pages");
    let project = std::fs::read_dir(pages).unwrap().next().unwrap().unwrap();
    let kept = std::fs::read_dir(project.path().join("deployments")).unwrap();
    assert_eq!(kept.count(), 2);
}
