//! Tests that no request returns anything except the files of the site.

use std::sync::LazyLock;

use core_domain::port::Infrastructure;
use core_domain::registry::ResourceType;
use core_domain::testing::cases;
use proptest::prelude::*;
use tokio::runtime::Runtime;

use crate::host::{body, get};
use crate::support::{World, request, world};

const SECRET: &str = "the-secret-of-somebody-else";

/// A site with secret files in another project, next to the provider's folder and inside it.
static SURROUNDED: LazyLock<(Runtime, World)> = LazyLock::new(|| {
    let runtime = Runtime::new().unwrap();
    let world = runtime.block_on(async {
        let world = world().await;
        world.project("acme-site").await;
        let files = [
            ("index.html", "front"),
            ("a/b.txt", "b"),
            ("%2e%2e", "dots"),
            ("404.html", "lost"),
        ];
        world.deploy("acme-site", "d-1", &files).await;
        world.project("acme-other").await;
        world
            .deploy("acme-other", "d-1", &[("secret.txt", SECRET)])
            .await;
        world
            .infra
            .create(&request(ResourceType::R2, "acme-site"))
            .await
            .unwrap();
        let bucket = world.infra.bucket("acme-site").await.unwrap();
        bucket
            .put("secret.txt", "text/plain", SECRET.into())
            .await
            .unwrap();
        for place in [
            "secret.txt",
            "infra/secret.txt",
            "infra/pages/secret.txt",
            "infra/pages/acme-site/secret.txt",
        ] {
            std::fs::write(world.folder.path().join(place), SECRET).unwrap();
        }
        world
    });
    (runtime, world)
});

fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("..".to_owned()),
        Just("%2e%2e".to_owned()),
        Just("%2E.".to_owned()),
        Just(".".to_owned()),
        Just(String::new()),
        Just("..%2f..%2f".to_owned()),
        Just("..%5c".to_owned()),
        Just("%252e%252e".to_owned()),
        Just("%00".to_owned()),
        Just("%c0%ae%c0%ae".to_owned()),
        Just("a".to_owned()),
        Just("b.txt".to_owned()),
        Just("secret.txt".to_owned()),
        Just("manifest.json".to_owned()),
        Just("acme-site".to_owned()),
        Just("deployments".to_owned()),
        Just("content".to_owned()),
        Just("index.json".to_owned()),
        Just("branches".to_owned()),
        Just("production".to_owned()),
        Just("infra".to_owned()),
        Just("pages".to_owned()),
        Just("etc".to_owned()),
        Just("passwd".to_owned()),
        "[a-z0-9.%_~-]{0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(400)))]
    #[test]
    fn no_path_escapes_from_the_site(parts in prop::collection::vec(part(), 0..8), by_host in any::<bool>()) {
        let path = parts.join("/");
        let url = if by_host {
            format!("http://acme-site.localhost/{path}")
        } else {
            format!("http://127.0.0.1/acme-site/{path}")
        };
        let (runtime, world) = &*SURROUNDED;
        let (status, text) = runtime.block_on(async {
            let answer = get(world, &url).await;
            (answer.status().as_u16(), body(answer).await)
        });
        let allowed = match status {
            200 => ["front", "b", "dots", "lost"].contains(&&*text),
            404 => ["lost", "Not found.\n"].contains(&&*text),
            308 => text.is_empty(),
            _ => false,
        };
        prop_assert!(allowed, "{url}: {status} {text}");
    }

    #[test]
    fn no_label_escapes_from_the_folder(parts in prop::collection::vec(part(), 0..6)) {
        let url = format!("http://127.0.0.1/{}", parts.join("/"));
        let (runtime, world) = &*SURROUNDED;
        let text = runtime.block_on(async { body(get(world, &url).await).await });
        prop_assert!(!text.contains(SECRET), "{url}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn symbolic_links_planted_in_a_deployment_are_not_followed() {
    let world = world().await;
    world.project("acme-site").await;
    world
        .deploy(
            "acme-site",
            "d-1",
            &[("index.html", &"x".repeat(SECRET.len()))],
        )
        .await;
    let outside = world.folder.path().join("secret.txt");
    std::fs::write(&outside, SECRET).unwrap();
    let contents = world.folder.path().join("infra/pages/acme-site/content");
    for file in std::fs::read_dir(contents).unwrap() {
        let path = file.unwrap().path();
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&outside, path).unwrap();
    }
    let answer = get(&world, "http://acme-site.localhost/").await;
    assert_eq!(answer.status(), 500);
    assert!(!body(answer).await.contains(SECRET));
}
