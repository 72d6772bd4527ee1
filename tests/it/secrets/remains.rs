//! The places to which an installation writes: its log, its folder, its database.

use std::path::{Path, PathBuf};

use crate::world::Log;

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
}

/// Returns a link that was mailed to the address and contains `part`, among the links not seen yet.
pub(super) async fn mailed_link(
    log: &Log,
    data: &Path,
    to: &str,
    part: &str,
    seen: &[String],
) -> String {
    let outbox = data.join("outbox");
    log.retry_when_logged("a mail was written", || {
        let mails = below(&outbox)
            .into_iter()
            .filter(|path| path.extension().is_some_and(|extension| extension == "eml"));
        let mails = mails.map(|path| read(&path));
        let mails = mails.filter(|mail| mail.contains(&format!("To: {to}")));
        let links = mails.filter_map(|mail| {
            let plain = mail.replace("=\r\n", "").replace("=3D", "=");
            let link = plain
                .split_whitespace()
                .find(|word| word.contains(part) && word.starts_with("http"));
            link.map(str::to_owned)
        });
        links.into_iter().find(|link| !seen.contains(link))
    })
    .await
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                below(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

/// Returns every file of the data folder, except for mails, whose purpose is to contain links.
pub(super) fn files(data: &Path) -> Vec<(String, Vec<u8>)> {
    let files = below(data)
        .into_iter()
        .filter(|path| !path.starts_with(data.join("outbox")));
    files
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect()
}

/// Returns every table of the database, with each row as text.
pub(super) async fn tables(client: &tokio_postgres::Client) -> Vec<(String, String)> {
    let tables = "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables \
        WHERE schemaname NOT IN ('pg_catalog', 'information_schema')";
    let mut found = Vec::new();
    for table in client.query(tables, &[]).await.unwrap() {
        let table: String = table.get(0);
        let rows = client
            .query(&format!("SELECT t::text FROM {table} t"), &[])
            .await
            .unwrap();
        let rows: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        found.push((table, rows.join("\n")));
    }
    found
}
