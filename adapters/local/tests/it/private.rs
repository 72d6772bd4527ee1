//! Tests that files are private and that errors hide paths.

use core_domain::port::{Blobs, Infrastructure, ProviderError};
use core_domain::registry::ResourceType;
use core_local::FileBlobs;

use crate::support::{request, upload, world};

#[cfg(unix)]
fn modes(folder: &std::path::Path, seen: &mut usize) {
    use std::os::unix::fs::PermissionsExt;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        *seen += 1;
        if path.is_dir() {
            assert_eq!(mode, 0o700, "{}", path.display());
            modes(&path, seen);
        } else {
            assert_eq!(mode, 0o600, "{}", path.display());
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn all_files_are_accessible_only_to_the_current_user() {
    let world = world().await;
    for &kind in ResourceType::ALL {
        world
            .infra
            .create(&request(kind, "acme-site"))
            .await
            .unwrap();
    }
    let files = [("index.html", "front"), ("css/a.css", "x")];
    for n in 0..12 {
        world.deploy("acme-site", &format!("d-{n}"), &files).await;
    }
    let bucket = world.infra.bucket("acme-site").await.unwrap();
    bucket
        .put("key", "text/plain", b"x".to_vec())
        .await
        .unwrap();
    let kv = world.infra.kv("acme-site").await.unwrap();
    kv.put("key", b"value", None).await.unwrap();
    let blobs = FileBlobs::open(world.folder.path().join("deep/blobs"))
        .await
        .unwrap();
    blobs.put("upload-1", b"x".to_vec()).await.unwrap();
    let mut staged = blobs.stage().await.unwrap();
    staged.append(b"x".to_vec()).await.unwrap();
    let mut seen = 0;
    modes(world.folder.path(), &mut seen);
    assert!(seen > 60, "{seen}");
}

#[tokio::test]
async fn errors_for_tenants_contain_no_server_paths() {
    let world = world().await;
    world.project("acme-site").await;
    let root = world.folder.path().join("infra");
    std::fs::write(root.join("pages/acme-site/manifest.json"), "{").unwrap();
    let upload = upload("acme-site", "production", "d-1", &[("index.html", "")]);
    let refused = world.infra.deploy_site(upload).await.unwrap_err();
    assert!(matches!(refused, ProviderError::Damaged(_)), "{refused:?}");
    let text = refused.to_string();
    assert!(!text.contains("manifest") && !text.contains('/'), "{text}");

    std::fs::remove_dir_all(root.join("r2")).unwrap();
    std::fs::write(root.join("r2"), "a file").unwrap();
    let objects = request(ResourceType::R2, "acme-objects");
    let refused = world.infra.create(&objects).await.unwrap_err();
    let text = refused.to_string();
    assert!(
        !text.contains("r2/") && !text.contains("os error"),
        "{text}"
    );
}
