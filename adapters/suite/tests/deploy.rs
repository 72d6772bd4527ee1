//! Real archives of every format through the command line's service.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

use std::io::{Cursor, Write};
use std::sync::Arc;

use core_domain::kernel::{ManualClock, Timestamp};
use core_domain::port::{Mode, Store};
use core_domain::registry::Deployment;
use core_http::kernel::testing::{Answer, app, call, operator, send};
use core_http::kernel::{Service, bytes_body};
use core_storage::memory::{MemoryConfig, open};
use core_suite::UnpackArchives;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Request, StatusCode};
use serde_json::json;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const PAGE: &[u8] = b"<h1>Hello</h1>";
const STYLE: &[u8] = b"h1 { color: teal }";

struct World {
    store: Arc<dyn Store>,
    service: Service,
    platform: String,
}

impl World {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
        let store = open(MemoryConfig {
            clock: clock.clone(),
            cursor_key: [7; 32].into(),
        });
        let app = app(store.clone(), clock);
        let registry = core_http::registry::service(app.clone()).unwrap();
        let body = json!({ "name": "Shop", "slug": "shop" });
        let made = call(&registry, "POST", "/api/v1/platforms", &operator(), body).await;
        let archives = Arc::new(UnpackArchives::default());
        Self {
            store,
            service: core_http::cli::service(app, archives).unwrap(),
            platform: made.json["id"].as_str().unwrap().to_owned(),
        }
    }

    async fn deploy(&self, branch: &str, content_type: &str, body: &[u8]) -> Answer {
        let request = Request::post(format!("/platforms/{}/deploy", self.platform))
            .header("x-core-deploy-branch", branch)
            .header("content-type", content_type)
            .extension(operator())
            .body(bytes_body(body.to_vec()));
        send(&self.service, request.unwrap()).await
    }

    async fn stored(&self, answer: &Answer) -> Deployment {
        let id = answer.json["deploymentId"].as_str().unwrap();
        let mut uow = self.store.begin(Mode::Auto).await.unwrap();
        let found = uow.deployments().get(id).await.unwrap();
        found.unwrap().into_inner()
    }
}

fn tar_with(more: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in [("dist/index.html", PAGE), ("dist/site.css", STYLE)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, content).unwrap();
    }
    more(&mut builder);
    builder.into_inner().unwrap()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zip() -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in [("index.html", PAGE), ("site.css", STYLE)] {
        writer
            .start_file(path, SimpleFileOptions::default())
            .unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[tokio::test]
async fn a_site_arrives_in_every_format_under_every_content_type() {
    let world = World::new().await;
    let (tar, gz, zip) = (tar_with(|_| {}), gz(&tar_with(|_| {})), zip());
    let form = [
        &b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"s.zip\"\r\n\r\n"[..],
        &zip,
        b"\r\n--b--\r\n",
    ]
    .concat();
    let any = "application/octet-stream";
    for (n, (content_type, body)) in [
        ("application/x-tar", &tar),
        ("application/gzip", &gz),
        ("application/zip", &zip),
        (any, &tar),
        (any, &gz),
        (any, &zip),
        ("multipart/form-data; boundary=b", &form),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = world.deploy(&format!("b{n}"), content_type, body).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{content_type}");
        let stored = world.stored(&answer).await;
        let bytes = i64::try_from(PAGE.len() + STYLE.len()).unwrap();
        assert_eq!(
            (stored.file_count, stored.total_bytes),
            (Some(2), Some(bytes))
        );
    }
}

#[tokio::test]
async fn what_is_wrong_with_an_archive_is_said_and_nothing_is_deployed() {
    let world = World::new().await;
    let linked = tar_with(|builder| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        builder
            .append_link(&mut header, "dist/x", "/etc/passwd")
            .unwrap();
    });
    let bomb = tar_with(|builder| {
        let zeros = vec![0_u8; 20 * 1024 * 1024];
        let mut header = tar::Header::new_gnu();
        header.set_size(zeros.len() as u64);
        builder
            .append_data(&mut header, "dist/bomb", &zeros[..])
            .unwrap();
    });
    let whole = gz(&tar_with(|_| {}));
    for (body, expected) in [
        (gz(&linked), "file: symlink"),
        (gz(&bomb), "file: too_large"),
        (whole[..whole.len() / 2].to_vec(), "file: broken_archive"),
        (b"hello".to_vec(), "file: unknown_format"),
    ] {
        let refused = world
            .deploy("main", "application/octet-stream", &body)
            .await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        assert_eq!(refused.issues(), [expected]);
    }
}
