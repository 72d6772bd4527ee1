//! Tests of the example site: the served files equal the written ones, and every link works.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use core_domain::port::{Infrastructure, SiteUpload};
use core_domain::testing::MemorySite;
use http_body_util::BodyExt;

use crate::host::{BY_PATH, body, get, world_by_path};
use crate::support::World;

/// A file of the example site.
struct File {
    path: String,
    content: Vec<u8>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/site")
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<File>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{prefix}{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &format!("{path}/"), files);
        } else {
            let content = fs::read(entry.path()).unwrap();
            files.push(File { path, content });
        }
    }
}

async fn deploy_example_site() -> (World, Vec<File>) {
    let mut files = Vec::new();
    collect(&folder(), "", &mut files);
    let world = world_by_path().await;
    world.project("acme-site").await;
    let site: MemorySite = files.iter().map(|f| (&*f.path, &*f.content)).collect();
    let upload = SiteUpload {
        project: "acme-site".to_owned(),
        branch: "production".to_owned(),
        deployment_key: "d-1".to_owned(),
        site: Arc::new(site),
    };
    world.infra.deploy_site(upload).await.unwrap();
    (world, files)
}

/// Returns the values of `href` and `src`.
fn links(page: &str) -> Vec<&str> {
    let after = |name| page.split(name).skip(1);
    after(" href=\"")
        .chain(after(" src=\""))
        .map(|rest| rest.split('"').next().unwrap())
        .collect()
}

/// Resolves a relative link of a page to a path.
fn resolve(page: &str, link: &str) -> String {
    let link = link.split('#').next().unwrap();
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    if link.ends_with("./") || link == ".." {
        parts.retain(|part| !part.is_empty());
        parts.push("");
    }
    parts.join("/")
}

#[tokio::test]
async fn every_file_is_served_unchanged_by_host_and_by_path() {
    let (world, files) = deploy_example_site().await;
    assert_eq!(files.len(), 8);
    for base in [
        "http://acme-site.localhost/",
        &format!("{BY_PATH}/acme-site/"),
    ] {
        for file in &files {
            let answer = get(&world, &format!("{base}{}", file.path)).await;
            assert_eq!(answer.status(), 200, "{}", file.path);
            let served = answer.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(served, file.content, "{}", file.path);
        }
    }
}

#[tokio::test]
async fn every_link_resolves_to_a_page() {
    let (world, files) = deploy_example_site().await;
    for base in [
        "http://acme-site.localhost/",
        &format!("{BY_PATH}/acme-site/"),
    ] {
        for page in files.iter().filter(|file| file.path.ends_with(".html")) {
            let text = std::str::from_utf8(&page.content).unwrap();
            for link in links(text)
                .into_iter()
                .filter(|link| !link.starts_with('#'))
            {
                assert!(
                    !link.starts_with('/') && !link.contains(':'),
                    "{link} is not relative"
                );
                let target = format!("{base}{}", resolve(&page.path, link));
                let answer = get(&world, &target).await;
                assert_eq!(answer.status(), 200, "{}: {link} is {target}", page.path);
            }
        }
    }
}

#[tokio::test]
async fn site_uses_no_external_resources() {
    let (_, files) = deploy_example_site().await;
    for file in files.iter().filter(|file| !file.path.ends_with(".png")) {
        let text = std::str::from_utf8(&file.content).unwrap();
        let text = text.replace("http://www.w3.org/2000/svg", "");
        assert!(
            !text.contains("://") && !text.contains("@import"),
            "{}",
            file.path
        );
    }
}

#[tokio::test]
async fn missing_path_shows_the_custom_404_page() {
    let (world, _) = deploy_example_site().await;
    let answer = get(&world, "http://acme-site.localhost/no/such/page").await;
    assert_eq!(answer.status(), 404);
    assert!(body(answer).await.contains("This page does not exist"));
}
