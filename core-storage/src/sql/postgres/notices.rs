//! The channel on which the processes of an installation exchange notices, see
//! [`Notices`](core_domain::port::Notices).

use core_domain::kernel::{NoticeSet, ProcessName, hex};
use sha2::{Digest, Sha256};

use crate::sql::ddl::{quote_ident, text_literal};

/// The beginning of the name of each channel.
const PREFIX: &str = "core_notices_";
/// The maximum size of the payload of a notification. Postgres accepts less than 8,000 bytes.
const MAX_PAYLOAD_BYTES: usize = 7_900;

/// A query for the schema of the tables, if the configuration names none. Its one row has one text.
pub const CURRENT_SCHEMA: &str = "SELECT COALESCE(current_schema(), '')::text";

/// Returns the name of the channel of the installation whose tables are in this schema. Other schemas of the database
/// have other channels. The name has 45 bytes. It contains a digest, because the name of a schema can be as long as a
/// name may be.
#[must_use]
pub fn notice_channel(schema: &str) -> String {
    let digest = hex(&Sha256::digest(schema.as_bytes())[..16]);
    format!("{PREFIX}{digest}")
}

/// Returns the statements that send notices to a channel: one for each payload.
#[must_use]
pub fn notify_statements(channel: &str, notices: &NoticeSet, sender: &ProcessName) -> String {
    let channel = quote_ident(channel);
    let payloads = notices.to_messages(sender, MAX_PAYLOAD_BYTES).into_iter();
    let statements = payloads.map(|text| format!("NOTIFY {channel}, {}", text_literal(&text)));
    statements.collect::<Vec<_>>().join("; ")
}
