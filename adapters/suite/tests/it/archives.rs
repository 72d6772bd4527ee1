//! Real archives of every format, uploaded through the gateway.

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use http::StatusCode;
use serde_json::{Value, json};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::world::{SERVICE_KEY, World};

const PAGE: &[u8] = b"<h1>Hello</h1>";
const STYLE: &[u8] = b"h1 { color: teal }";

pub(crate) fn tar_with(more: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
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

pub(crate) fn gz(bytes: &[u8]) -> Vec<u8> {
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
async fn a_site_is_accepted_in_every_format_under_every_content_type() {
    let world = World::new().await;
    let platform = world.platform("shop").await;
    let (tar, gz, zip) = (tar_with(|_| {}), gz(&tar_with(|_| {})), zip());
    let form = [
        &b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"s.zip\"\r\n\r\n"[..],
        &zip,
        b"\r\n--b--\r\n",
    ]
    .concat();
    let any = "application/octet-stream";
    let uploads = [
        ("application/x-tar", &tar),
        ("application/gzip", &gz),
        ("application/zip", &zip),
        (any, &tar),
        (any, &gz),
        (any, &zip),
        ("multipart/form-data; boundary=b", &form),
    ];
    for (n, (content_type, body)) in uploads.into_iter().enumerate() {
        let answer = world
            .deploy(&platform, &format!("b{n}"), content_type, body)
            .await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{content_type}");
    }
    let path = format!("/api/v1/platforms/{platform}/audit?action=deployment.created");
    let audit = world.call("GET", &path, SERVICE_KEY, Value::Null).await;
    let entries = audit.json["data"].as_array().unwrap();
    assert_eq!(entries.len(), uploads.len());
    for entry in entries {
        let shown = (&entry["after"]["fileCount"], &entry["after"]["totalBytes"]);
        assert_eq!(shown, (&json!(2), &json!(PAGE.len() + STYLE.len())));
    }
}

#[tokio::test]
async fn an_invalid_archive_is_refused_with_its_defect_and_nothing_is_deployed() {
    let world = World::new().await;
    let platform = world.platform("shop").await;
    let linked = tar_with(|builder| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        let linked = builder.append_link(&mut header, "dist/x", "/etc/passwd");
        linked.unwrap();
    });
    let bomb = tar_with(|builder| {
        let zeros = vec![0_u8; 20 * 1024 * 1024];
        let mut header = tar::Header::new_gnu();
        header.set_size(zeros.len() as u64);
        let bomb = builder.append_data(&mut header, "dist/bomb", &zeros[..]);
        bomb.unwrap();
    });
    let whole = gz(&tar_with(|_| {}));
    for (body, expected) in [
        (gz(&linked), "file: symlink"),
        (gz(&bomb), "file: too_large"),
        (whole[..whole.len() / 2].to_vec(), "file: broken_archive"),
        (b"hello".to_vec(), "file: unknown_format"),
    ] {
        let refused = world
            .deploy(&platform, "main", "application/octet-stream", &body)
            .await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        assert_eq!(refused.issues(), [expected]);
    }
    let path = format!("/api/v1/platforms/{platform}/audit?action=deployment.created");
    let audit = world.call("GET", &path, SERVICE_KEY, Value::Null).await;
    assert_eq!(audit.total(), Some(0));
}
