//! The settings of sites: limits that apply to all parts, and addresses next to IAM.

use core_suite::{Suite, SuiteBuilder, SuiteError};
use serde_json::json;

use crate::archives::tar_with;
use crate::world::World;

const MIB: u64 = 1024 * 1024;
const ANY: &str = "application/octet-stream";

/// Returns a site with an additional file of 10,000 bytes, all equal to `byte`.
fn site(byte: u8) -> Vec<u8> {
    tar_with(|archive| {
        let mut header = tar::Header::new_gnu();
        header.set_size(10_000);
        let content = [byte; 10_000];
        let added = archive.append_data(&mut header, "dist/large", &content[..]);
        added.unwrap();
    })
}

#[tokio::test]
async fn the_sites_of_a_platform_cannot_exceed_their_byte_limit() {
    const LIMIT: u64 = 40_000;
    let world = World::with(|builder| {
        builder.settings(|settings| settings.limits.site_bytes_per_platform = LIMIT)
    });
    let world = world.await;
    let platform = world.platform("shop").await;
    let deploy = |branch: &'static str, byte| {
        let (world, platform, site) = (&world, &platform, site(byte));
        async move { world.deploy(platform, branch, ANY, &site).await }
    };
    // Files with equal content are counted once.
    for branch in ["production", "one", "two", "three"] {
        let deployed = deploy(branch, b'a').await.expect(202);
        world.live(&platform, &deployed).await;
    }
    let more = deploy("four", b'b').await.expect(202);
    world.live(&platform, &more).await;
    let refused = deploy("five", b'c').await;
    let refused = refused.expect_error(409, "LIMIT_REACHED");
    assert_eq!(refused.json["error"]["details"]["limit"], json!(LIMIT));
    // A new version replaces the previous one.
    for byte in b'd'..=b'h' {
        let next = deploy("four", byte).await.expect(202);
        world.live(&platform, &next).await;
    }
    let other = world.platform("other").await;
    let elsewhere = world.deploy(&other, "production", ANY, &site(b'c')).await;
    let _ = elsewhere.expect(202);
}

#[tokio::test]
async fn the_gateway_accepts_uploads_up_to_the_limit_of_the_site_settings() {
    let world = World::with(|builder| {
        builder.settings(|settings| settings.cli.sites.upload_bytes = 102 * MIB)
    });
    let world = world.await;
    let platform = world.platform("shop").await;
    let upload = vec![0; usize::try_from(101 * MIB).unwrap()];
    let refused = world.deploy(&platform, "main", ANY, &upload).await;
    // The gateway forwards it. The service refuses it, because it is not an archive.
    assert_ne!(refused.status, 413, "{}", refused.json);
}

fn beside(iam: &str, change: impl FnOnce(&mut core_suite::SiteOptions)) -> SuiteBuilder {
    let builder = Suite::builder().iam_url(iam);
    builder.settings(|settings| change(&mut settings.sites))
}

#[test]
fn no_suite_serves_sites_by_path_on_the_host_of_iam() {
    for (iam, by_path) in [
        ("https://iam.example.org", "https://iam.example.org:8443"),
        ("http://127.0.0.1:8081", "http://localhost:8090"),
    ] {
        let builder = beside(iam, |sites| sites.by_path = Some(by_path.to_owned()));
        let refused = builder.check().unwrap_err();
        let SuiteError::Setting(error) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(error.setting, "sites.by_path");
    }
}

#[test]
fn sites_below_the_registrable_domain_of_iam_cause_a_warning() {
    let below = |sites: &mut core_suite::SiteOptions| sites.domain = "example.org".to_owned();
    let builder = beside("https://iam.example.org", below);
    let warnings = builder.contradictions();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].to_string().starts_with("sites.domain: "));
    builder.check().unwrap();
    let apart = beside("https://iam.example.net", below);
    assert!(apart.contradictions().is_empty());
}
